"""One dataclass with a decode function per kind of event, in modules by subject."""

from engine.binlog.events.decoding import Event, TaggedGtid, decode_event, feed_entry, gtid_set_text
from engine.binlog.format_description import verify_checksum

__all__ = ["Event", "TaggedGtid", "decode_event", "feed_entry", "gtid_set_text", "verify_checksum"]
