"""What a submission may take, and how much of it is read: all limits of grading, with their units.

What a box may take stands in :mod:`autograder.box.confinement`, what it may say in
:mod:`autograder.box.caps`.
"""

from __future__ import annotations

from dataclasses import dataclass

#: A notebook file without large outputs, in bytes, unless a class says otherwise (``size``). One
#: with many figures has a few million.
MAX_NOTEBOOK_BYTES = 25 * 2**20
#: How many times as much is read of it at all, to find what is no output.
MAX_TIMES_READ = 20
#: Lists and objects in it: read, each takes up to a hundred times its place in the file.
MAX_NOTEBOOK_CONTAINERS = 1_000_000
#: Its cells. A lesson has a few dozen.
MAX_NOTEBOOK_CELLS = 2_000
#: Bytes, and lists and objects, of one cell's outputs that are kept, to be shown beside its code.
MAX_OUTPUT_BYTES = 2**20
MAX_OUTPUT_CONTAINERS = 2_000
#: Outputs of a cell.
MAX_CELL_OUTPUTS = 200

#: Characters of one cell that are looked at; of a longer one everything may be.
MAX_CELL_CHARACTERS = 20_000
#: Characters of all cells of a notebook that are looked at.
MAX_NOTEBOOK_CHARACTERS = 400_000
#: Characters of a line of a written answer that are looked at, and of a cell that a flag quotes.
MAX_LINE_CHARACTERS = 500
MAX_QUOTED_CHARACTERS = 50
#: Pictures of one written answer, bytes of one, and its pixels.
MAX_ANSWER_PICTURES = 12
MAX_PICTURE_BYTES = 15 * 2**20
MAX_PICTURE_PIXELS = 25_000_000

#: Processor seconds of the thread that judges one test; waiting for a box costs none.
MAX_JUDGING_SECONDS = 4.0
#: Bytes of addresses beyond what the process has already.
MAX_JUDGING_BYTES = 2**30
#: Characters of a message: a value of the student's may be part of it.
MAX_MESSAGE_CHARACTERS = 4_000
#: Bits that hidden tests of one submission may tell of exceptions, and characters of a line of the
#: student's.
MAX_TOLD_BITS = 70.0
MAX_TOLD_LINE_CHARACTERS = 160
#: Testers that a worker keeps warm: one for each assignment of the course, and some more.
MAX_TESTERS = 16


@dataclass(frozen=True)
class Limits:
    """What a submission may take: processor seconds, MiB of memory for all its processes, and MiB
    of its file, large outputs left out.

    It may sleep :data:`autograder.box.patience.ASLEEP` times as long.
    """

    cell: float = 30.0
    test: float = 20.0
    notebook: float = 240.0
    memory: float = 2048.0
    size: float = MAX_NOTEBOOK_BYTES / 2**20
