"""Tests of how a class is graded and handed back."""
