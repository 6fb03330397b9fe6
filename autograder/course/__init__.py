"""The course as its authors write it.

In: ``lessons/``: notebooks as text, wrong and right implementations, ``course.toml``. Out:
a checked :class:`.lessons.Course`, and the :class:`.bundle.Bundle` that grading one lesson
needs. It must not know how anything is run, graded or shown. Public face: :mod:`.lessons`,
:mod:`.implementations`, :mod:`.bundle`.
"""
