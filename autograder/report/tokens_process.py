"""Code without names, comments and blanks: ``python -m autograder.report.tokens_process``.

copydetect has Pygments tokenise, which is regular expressions on what students wrote: not in the
process that compares a class, see :mod:`autograder.limited_process`.
"""

from __future__ import annotations

from autograder.limited_process import serve

#: Processor seconds for one submission, and bytes for the process: it imports NumPy.
SECONDS, MEMORY = 10.0, 2**31


def _without_names(text: str) -> tuple[str, list[list[int]]]:
    """What :func:`copydetect.utils.filter_code` makes of a text."""
    from copydetect.utils import filter_code

    code, offsets = filter_code(text, "cell.py", "python")
    return str(code), offsets.tolist()


if __name__ == "__main__":
    import copydetect  # noqa: F401  # its import is not the first text's time

    serve({"without_names": _without_names}, seconds=SECONDS, memory=MEMORY)
