"""Tests of which known mistake a failing exercise shows."""
