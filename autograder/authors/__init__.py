"""What authors of lessons ask: is it right, is it tested, does it name mistakes?

In: a lesson. Out: remarks and counts. It must not know classes or submissions. Public face:
:mod:`.lint`, :mod:`.trial`, :mod:`.mutation_score`.
"""
