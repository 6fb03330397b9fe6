"""Tests of the sandbox process and the wire to it."""
