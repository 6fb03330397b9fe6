"""What a class got right and wrong, as one page and one table.

In: ``grades.json`` of a class. Out: HTML and CSV without names. It must not know notebooks,
tests or the gradebook. Public face: :mod:`.class_report`.
"""
