"""Which known mistake a failing exercise shows.

In: what the tests saw of an answer, and the catalogue of wrong answers. Out: the mistake that
explains it, or none. It must not know students, classes or points. Public face:
:mod:`.diagnosis`; :mod:`.catalogue` (puts the wrong answers through the tests).
"""
