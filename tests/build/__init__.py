"""Tests of what is made of lessons/."""
