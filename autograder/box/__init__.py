"""One student's notebook in a process of its own, confined, and the wire to it.

In: cells to run, names to call, probes with plain data. Out: plain data, or that the box died or
took too long. It must not know tests, points, solutions or the class. Public face:
:mod:`.boxes` (start one), :mod:`.box` (ask it), :mod:`.sandbox` (what this machine can do).
"""
