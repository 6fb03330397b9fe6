"""Tests of the project itself: its structure, packages and documentation."""
