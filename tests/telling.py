"""Which lines of code would give a solution or a hidden test away."""

from __future__ import annotations

import re

#: What any code of this kind holds, and tells nothing.
BOILERPLATE = {
    "exceptException:",
    "super().__init__()",
    "withtorch.no_grad():",
    "torch.manual_seed(0)",
    "generator=torch.Generator().manual_seed(0)",
    "rng=np.random.default_rng(0)",
    "ifmaskisnotNone:",
    "exceptRuntimeErroraserror:",
    "n=X.shape[-2]",
    "batch,n,d_model=x.shape",
    "output,weights=torch_scaled_dot_product_attention(Q,K,V,mask)",
    "mask,",
    "K,V=cache.append(K,V)",  # lesson 11 shows how a cache is used
    "return(",
}


def telling_lines(source: str) -> set[str]:
    """The lines of a piece of code that would tell something, without white space.

    A bare return of a name, the head of a loop, a keyword, a bracket or an empty list stands in
    any code.
    """
    found = set()
    for line in source.splitlines():
        text = re.sub(r"\s+#.*$", "", line).strip()
        if not text or text.startswith(("#", '"""', "def ", "class ", "import ", "from ")):
            continue
        if re.fullmatch(r"(return )?\w*:?|[\W_]*|for .*:|(if|elif|else|while|try).{0,8}:", text):
            continue
        if re.fullmatch(r"\w+ = [\[{(][\]})]?", text):
            continue
        found.add(re.sub(r"\s+", "", text))
    return found


def solution_regions(source: str) -> str:
    found = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", source, re.S)
    return "\n".join(found)


def hidden_regions(source: str) -> str:
    return "\n".join(re.findall(r"### BEGIN HIDDEN TESTS\n(.*?)### END HIDDEN", source, re.S))
