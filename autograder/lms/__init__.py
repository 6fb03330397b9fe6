"""To and from learning management systems: Moodle, Canvas, Gradescope.

In: an archive that one of them made, or a class's grades. Out: ``submitted/``, or a table that it
imports. It must not know how anything is graded. Public face: :mod:`.collecting`, :mod:`.export`;
one module an LMS.
"""
