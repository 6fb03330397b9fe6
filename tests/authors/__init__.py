"""Tests of what authors ask."""
