"""Tests of to and from an LMS."""
