"""Grading a class: every submission gets a result, every result its place and its page.

In: a class folder. Out: its gradebook, ``autograded/``, ``feedback/`` and grades, also by
nbgrader's own commands and buttons. It must not know LMSs or the command line. Public face:
:mod:`.grade_class`, :mod:`.hand_back`, :mod:`.regrade`, :mod:`.nbgrader_engine`.
"""
