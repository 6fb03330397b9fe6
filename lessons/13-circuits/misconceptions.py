"""Wrong implementations of lesson 13, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong
