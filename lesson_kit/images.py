"""An image as HTML: it keeps its words, and on a dark page it is dark.

JupyterLab shows no alternative text of an image output, and takes ``<svg>`` away; of HTML it keeps
both. In a notebook that is not trusted the style goes, and the image is as it was made.
"""

from __future__ import annotations

import html
from base64 import b64encode

__all__ = ["STYLE", "html_image"]

#: On a dark page light and dark change places, and hues stay: white becomes the page, blue is still
#: blue. With each image, for a page may not hold the others; of JupyterLab, VS Code, Colab, furo.
STYLE = (
    '<style>:is([data-jp-theme-light="false"], .vscode-dark, [theme="dark"], [data-theme="dark"]) '
    "img.drawn {filter: invert(0.93) hue-rotate(180deg)} @media (prefers-color-scheme: dark) "
    '{[data-theme="auto"] img.drawn {filter: invert(0.93) hue-rotate(180deg)}}</style>'
)


def html_image(data: bytes, kind: str, words: str) -> str:
    """An image that stands in the page itself.

    Args:
        data: the file.
        kind: "png" or "svg+xml".
        words: what a reader who does not see it needs from it.
    """
    source = f"data:image/{kind};base64,{b64encode(data).decode()}"
    return f'{STYLE}<img class="drawn" alt="{html.escape(words)}" src="{source}">'
