"""One notebook to one result: a pure function.

In: the bytes that were handed in and the lesson's bundle. Out: a :class:`.result.Result`, whatever
was handed in. It must not know who handed it in, the gradebook, or the clock on the wall. Public
face: :mod:`.grading` (the steps), :mod:`.task`, :mod:`.executors` (many at a time).
"""
