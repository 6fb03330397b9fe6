"""The kit: the modules that a lesson's notebook imports.

It is installed with :mod:`autograder`, and a copy of it lies beside each notebook that is handed
out. In: what a student's code returns, and the file beside the notebook. Out: a check that passes,
or a box that says which mistake it is; the answers that passed, as a package of the student's own;
figures and sliders; a token's way; what became of a guess; a line of progress; parts of earlier
lessons; a published model. It must not know :mod:`autograder`: it runs wherever numpy, torch,
matplotlib and seaborn are installed. Public face: :mod:`.absent`, :mod:`.attention_view`,
:mod:`.batteries`, :mod:`.chat_model`, :mod:`.chat_tokenizer`, :mod:`.chat_window`, :mod:`.checks`,
:mod:`.course_progress`, :mod:`.drawn_maps`, :mod:`.earlier`, :mod:`.figures`, :mod:`.gguf_file`,
:mod:`.guesses`, :mod:`.hands_on`, :mod:`.progress`, :mod:`.token_way`.
"""

import sys as _sys

if "ipykernel" in _sys.modules:  # and so in no process that grades, builds or proves
    from . import not_begun as _not_begun
    from . import own_keeping as _own_keeping
    from . import ready as _ready

    _not_begun.watch()
    _own_keeping.watch()
    _ready.watch()
