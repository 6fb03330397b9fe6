"""An attention map to look around in: a word shows what each head looks at from there.

Where a person's page asked for the cell it is a piece of HTML with a script of its own: it loads
nothing and asks no server, so it goes on working without a kernel. Everywhere else (the build,
nbval, a check on the terminal) one head is a heat map. Keys, mouse and touch reach all of it; what
is to be seen stands in words below, which a screen reader reads.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
from IPython.display import Markdown, display

from .cells import asked_by_a_page
from .figures import heatmap, text_table
from .words import N_, tr

__all__ = ["attention_view", "page_of"]

_STYLE = """
.av {font: 14px/1.5 sans-serif; max-width: 830px; color: var(--jp-content-font-color1, inherit)}
.av button {font: inherit; color: inherit; background: none; border: 2px solid transparent;
  border-radius: 4px; padding: 1px 5px; cursor: pointer}
.av button:focus-visible, .av:focus-visible {outline: 2px solid #2b7de0; outline-offset: 1px}
.av button[aria-pressed=true] {border-color: #2b7de0}
.av .maps {display: grid; gap: 3px; margin: 6px 0; overflow-x: auto}
.av .maps button {padding: 1px; line-height: 0}
.av canvas {width: 34px; height: 34px; image-rendering: pixelated}
.av .line {margin: 6px 0}
.av .line > span {display: inline-block; padding: 1px 5px; border-radius: 4px}
"""

#: Draws all of it from the data in the element, and again at each choice.
_SCRIPT = """
(root => {
  const {words, keys, shape: [L, H, n, m], first, texts} = JSON.parse(root.dataset.says);
  const told = (text, fields) => texts[text].replace(/{(\\w+)}/g, (_, name) => fields[name]);
  const w = Uint8Array.from(atob(root.dataset.weights), c => c.charCodeAt(0));
  let [l, h] = first, word = n - 1;
  const at = (l, h, i, j) => w[((l * H + h) * n + i) * m + j] / 255;
  const make = (name, parent, text) => {
    const made = parent.appendChild(document.createElement(name));
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const box = (cls) => { const made = make('div', root); made.className = cls; return made; };
  const name = make('p', root), maps = box('maps'), from = box('line'), to = box('line');
  const said = make('p', root);
  said.setAttribute('role', 'status');
  maps.style.gridTemplateColumns = `repeat(${H}, max-content)`;
  const heads = [];
  for (let a = 0; a < L; a++) for (let b = 0; b < H; b++) {
    const button = make('button', maps), map = make('canvas', button);
    button.setAttribute('aria-label', `L${a}H${b}`);
    button.title = `L${a}H${b}`;
    [map.width, map.height] = [m, n];
    const pen = map.getContext('2d');
    for (let i = 0; i < n; i++) for (let j = 0; j < m; j++) {
      const x = at(a, b, i, j);
      pen.fillStyle = `rgb(${247 - 214 * x}, ${251 - 149 * x}, ${255 - 83 * x})`;
      pen.fillRect(j, i, 1, 1);
    }
    button.onclick = () => show(a, b, word);
    heads.push(button);
  }
  make('span', from, texts.from);
  const queries = words.map((text, i) => {
    const button = make('button', from, text);
    button.onmouseenter = button.onfocus = button.onclick = () => show(l, h, i);
    return button;
  });
  make('span', to, texts.to);
  const looked = keys.map(text => make('span', to, text));
  const show = (a, b, i) => {
    [l, h, word] = [a, b, i];
    name.textContent = told('how', {layer: l, head: h});
    heads.forEach((button, k) => button.setAttribute('aria-pressed', k === l * H + h));
    queries.forEach((button, k) => button.setAttribute('aria-pressed', k === i));
    const row = keys.map((text, j) => [at(l, h, i, j), text]);
    row.forEach(([x], j) => {
      looked[j].style.background = `rgba(33, 102, 172, ${0.9 * x})`;
      looked[j].style.color = x > 0.85 ? '#fff' : '';
    });
    const most = row.filter(([x]) => x >= 0.1).sort((a, b) => b[0] - a[0]).slice(0, 4);
    const list = most.map(([x, text]) => `${told('quoted', {word: text})} ${x.toFixed(2)}`);
    const fields = {layer: l, head: h, word: told('quoted', {word: words[i]})};
    said.textContent = told('looks', {...fields, list: list.join(', ') || texts.nothing});
  };
  root.onkeydown = event => {
    const step = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0]};
    const by = step[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    show((l + by[0] + L) % L, (h + by[1] + H) % H, word);
  };
  show(l, h, word);
})(document.getElementById('ID'));
"""

_TEXTS = {
    "from": N_("from:"),
    "to": N_("to:"),
    "how": N_(
        "L{layer}H{head}: layer {layer}, head {head}, both counted from 0. Point at a word, or "
        "choose a map; with the arrow keys the next layer or head."
    ),
    "looks": N_("In L{layer}H{head}, {word} looks at {list}."),
    "quoted": N_("“{word}”"),
    "nothing": N_("no word with a tenth or more"),
}

_numbers = count()


def attention_view(
    words: Sequence[str],
    weights: Any,
    *,
    keys: Sequence[str] | None = None,
    first: tuple[int, int] = (0, 0),
    caption: str,
    alt: str,
) -> None:
    """Show the weights of all layers and heads, to look around in; without a page, those of one.

    Args:
        words: the queries, of length n_q.
        weights: (layers, heads, n_q, n_k), an array or a detached tensor, each from 0 to 1.
        keys: the words that are looked at, of length n_k; ``words`` where nothing is said.
        first: the layer and the head that are shown first.
        caption: what to look for, in a sentence or two.
        alt: what a reader who does not see the first head's map needs from it.

    Raises:
        ValueError: the shape of the weights does not fit the words, or ``first`` is not there.
    """
    keys = words if keys is None else keys
    array = np.asarray(weights, dtype=float)
    if array.ndim != 4 or array.shape[2:] != (len(words), len(keys)):
        raise ValueError(
            f"weights has shape {array.shape}; {len(words)} words and {len(keys)} keys need "
            f"(layers, heads, {len(words)}, {len(keys)})"
        )
    if not all(0 <= number < most for number, most in zip(first, array.shape)):
        raise ValueError(f"first is {first}; weights has layers and heads {array.shape[:2]}")
    head = array[first]
    title = f"L{first[0]}H{first[1]}"
    if not asked_by_a_page():
        heatmap(head, words, keys, caption=caption, alt=alt, title=title)
        return
    display({"text/html": page_of(words, array, keys, first), "text/plain": alt}, raw=True)
    table = text_table(head, words, keys)
    summary = tr("{title} in words and numbers", title=title)
    folded = f"<details><summary>{summary}</summary>\n\n{alt}\n\n{table}\n\n</details>"
    display(Markdown(f"*{html.escape(caption, quote=False)}*\n\n{folded}"))


def page_of(
    words: Sequence[str], weights: np.ndarray, keys: Sequence[str], first: tuple[int, int]
) -> str:
    """The view as HTML that needs nothing else; arguments as in :func:`attention_view`."""
    says = {
        "words": [*words],
        "keys": [*keys],
        "shape": weights.shape,
        "first": first,
        "texts": {name: tr(text) for name, text in _TEXTS.items()},
    }
    label = tr("Attention of all heads; arrow keys choose layer and head")
    numbers = np.rint(255 * np.clip(weights, 0, 1)).astype(np.uint8)
    name = f"attention-view-{next(_numbers)}"
    return (
        f"<style>{_STYLE}</style>"
        f'<div class="av" id="{name}" tabindex="0" role="group" data-lm-suppress-shortcuts="true" '
        f'aria-label="{html.escape(label)}" '
        f'data-says="{html.escape(json.dumps(says))}" '
        f'data-weights="{base64.b64encode(numbers.tobytes()).decode()}"></div>'
        f"<script>{_SCRIPT.replace('ID', name)}</script>"
    )
