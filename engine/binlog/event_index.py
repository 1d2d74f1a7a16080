"""The index of a batch of raw events: per event a row of its offset and its type code, with two flags."""

from __future__ import annotations

TRANSACTION_END = 0x100
"""Flag added to the type code of an event that ends a transaction."""

LEFT_OUT = 0x200
"""Instead of a type code: the row is not an event, but has the size in bytes of events that are left out.

It precedes an event whose header does not contain its position in the file."""
