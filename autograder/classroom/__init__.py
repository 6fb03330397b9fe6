"""A class: its folder in nbgrader's layout, who is in it, when what was due, the gradebook.

In: ``class.toml``, ``roster.csv``, ``submitted/``, and results. Out: what each submission counts,
in nbgrader's gradebook and in ``grades.json``. It must not know pages, LMSs or the command
line. Public face: :mod:`.folder`, :mod:`.gradebook`, :mod:`.standing`, :mod:`.grades_file`.
"""
