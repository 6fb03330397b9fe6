"""Build, check and grade the attention course."""

__version__ = "0.1.0"
