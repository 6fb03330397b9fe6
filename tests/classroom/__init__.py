"""Tests of a class folder."""
