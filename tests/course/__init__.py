"""Tests of the course as its authors write it."""
