"""Tests of what notebooks import."""
