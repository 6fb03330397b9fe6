"""Tests of what is said of a class."""
