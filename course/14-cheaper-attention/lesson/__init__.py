"""What travels with a lesson: the modules that a notebook imports.

In: what a student's code returns, and the files beside the notebook. Out: a check that passes,
or a box that says which mistake it is; figures and sliders; what became of a guess; a line of
progress. It must not know anything else of this package: it runs wherever numpy and torch are
installed. Public face: :mod:`.checks`, :mod:`.figures`, :mod:`.guesses`, :mod:`.hands_on`,
:mod:`.progress`.
"""
