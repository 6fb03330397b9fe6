"""From lesson sources to what people open: ``course/`` and ``solutions/``.

In: a :class:`~autograder.course.lessons.Course`. Out: released and solved notebooks with what lies
beside them, the start page, the manifest. It must not know classes or submissions. Public face:
:mod:`.build`.
"""
