"""What all errors have in common that a user can mend."""

from __future__ import annotations


class WrongUse(Exception):
    """Something given to this package cannot be used; the message says what to do."""
