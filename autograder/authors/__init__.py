"""What authors of lessons ask: is it right, is it tested, does it name mistakes?

In: a lesson, or nbgrader's notebooks. Out: remarks and counts; sources to write over. It must not
know classes or submissions. Public face: :mod:`.lint`, :mod:`.trial`, :mod:`.mutation_score`,
:mod:`.new_course`, :mod:`.nbgrader_notebooks`.
"""
