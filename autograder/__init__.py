"""Build, check and grade a course of Jupyter notebooks: the map of this package.

Each package's docstring says what comes in, what goes out and what it must not know. Imports go
downward only; ``[tool.importlinter]`` in pyproject.toml holds the floors, and a test keeps them::

    cli                              the command line
    marking    lms    report         a class graded; to and from an LMS; what a class got wrong
    classroom  authors               a class folder and its gradebook; what authors ask
    build      grade      student    sources to course/; one notebook to one result; own notebooks
    diagnose                         which known mistake it is
    box        course                student code, confined; the course as its authors write it
    lesson_kit                       what travels with a notebook: a package of its own
    errors  text  files  tables  notebooks  limited_process

docs/architecture.md walks through it: a submission to its grade, a lesson to a student's folder,
a misconception to its sentence.
"""

import sys

# jsonschema, which nbformat brings, compiles 39 grammars of internationalized addresses when it is
# imported: more than a second of each process. No schema of a notebook asks for them, and without
# this module jsonschema does without. Where it was imported before, nothing changes.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

__version__ = "0.1.0"
