"""One declared type with a decode function for every kind of event, grouped by what the events are about."""

from engine.decode.events.decoding import Event, decode_event, feed_entry
from engine.decode.format_description import verify_checksum

__all__ = ["Event", "decode_event", "feed_entry", "verify_checksum"]
