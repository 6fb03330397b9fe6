"""A student's own notebooks on the student's own machine.

In: a course folder that somebody works in. Out: which visible checks pass; a newer release with
the student's work in it. It must not know hidden tests, classes or the sandbox. Public face:
:mod:`.check`, :mod:`.update`.
"""
