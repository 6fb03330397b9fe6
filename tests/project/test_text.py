"""Text of a student's making is shown without what a terminal would obey."""

from autograder.text import plain


def test_colours_are_dropped_and_what_else_a_terminal_obeys_is_replaced() -> None:
    assert plain("a\x1b[1mb\x1b[0m c\x1b[31;1m", 100) == "ab c"
    assert plain("a\x1b[2Jb\x07", 100) == "a\ufffd[2Jb\ufffd"


def test_an_endless_colour_is_no_colour() -> None:
    assert plain("\x1b[" + "1" * 1000, 10_000).startswith("\ufffd[111")
