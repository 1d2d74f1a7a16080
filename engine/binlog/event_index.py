"""The index of a batch of raw events: a row per event, its offset and its type code, with two flags."""

from __future__ import annotations

TRANSACTION_END = 0x100
"""Flag beside the type code in a batch's index."""

LEFT_OUT = 0x200
"""In place of a type code: no event, but so many bytes (in place of an offset) of events that are left out.

It stands before an event whose position in the file its header does not tell."""
