"""Tests of how one notebook is graded."""
