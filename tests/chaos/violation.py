"""What a trial raises."""

from __future__ import annotations


class Violation(AssertionError):
    """Something that must hold of an output or an engine does not."""
