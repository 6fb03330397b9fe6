"""The command line: thin, the packages below do the work.

In: words on a terminal. Out: words, and exit statuses that the help of each command tells. It
must not know how anything is done. Public face: :func:`.main.main`; a module for each of student,
instructor, grading, maintainer.
"""
