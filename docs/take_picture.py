"""Take the README's picture out of the solved lesson 01: ``python docs/take_picture.py``."""

from __future__ import annotations

import base64
from pathlib import Path

import nbformat

from autograder.notebooks import png_of

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "solutions" / "01-attention-problem" / "attention_problem.ipynb"
PICTURE = ROOT / "docs" / "alignment.png"


def first_figure() -> bytes:
    """The first figure of the lesson: the trained translator's attention map."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    images = [
        png
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if (png := png_of(output.get("data", {})))
    ]
    return base64.b64decode(images[0])


if __name__ == "__main__":
    PICTURE.write_bytes(first_figure())
    print(f"{PICTURE.relative_to(ROOT)} is the first figure of lesson 01")
