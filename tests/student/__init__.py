"""Tests of a student's own commands, and what students read."""
