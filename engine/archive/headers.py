"""What the first events of a file say of it: its flavor, when it was begun, and the GTIDs before it."""

from __future__ import annotations

from io import BufferedReader
from typing import Any

from engine.archive.files import READ_ERRORS, ArchiveFile, open_file, unreadable
from engine.binlog.event_types import GTID_LIST_EVENT, HEADER_LENGTH, PREVIOUS_GTIDS_LOG_EVENT, EventHeader
from engine.binlog.events.decoding import decode_event, gtid_set_text
from engine.binlog.files import MAGIC_LENGTH, read_event
from engine.binlog.format_description import FormatDescription
from engine.dataclass import dataclass
from engine.errors import BinlogError, EventError

_STATE_EVENTS = (PREVIOUS_GTIDS_LOG_EVENT, GTID_LIST_EVENT)


@dataclass(frozen=True, slots=True)
class FileHeader:
    """The beginning of a binlog file."""

    flavor: str
    """`mysql` or `mariadb`."""
    begun: int
    """Server clock when the file was begun, seconds since the epoch."""
    gtids_before: str | None
    """The GTID set executed before the file; None if the file does not say."""


def read_header(file: ArchiveFile) -> FileHeader:
    """The file's header. Raises `EngineError` for a file that cannot be read, or is not a binlog."""
    try:
        with open_file(file).stream as stream:
            return _read(stream)
    except EventError as error:
        raise BinlogError(file.name, MAGIC_LENGTH, error.reason) from None
    except READ_ERRORS as error:
        raise unreadable(file, MAGIC_LENGTH, error) from None


def _read(stream: BufferedReader[Any]) -> FileHeader:
    first = read_event(stream)
    description = FormatDescription.parse(first)
    gtids = None
    # Only the start of an encryption comes between the format description and the GTIDs.
    for _ in range(2):
        event = read_event(stream)
        if len(event) > HEADER_LENGTH and event[4] in _STATE_EVENTS:
            gtids = gtid_set_text(decode_event(event, description))
            break
    return FileHeader(description.flavor, EventHeader.parse(first).timestamp, gtids)
