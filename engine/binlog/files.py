"""Local binlog files: checked when opened, and read event by event.

The pipeline reads files in large pieces (`engine.net.file_stream`); this module is for the `events` command.
Damage raises an error with file and position, after all events before it have been returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any

from engine.binlog.event_types import (
    FORMAT_DESCRIPTION_EVENT,
    HEADER_LENGTH,
    OLD_HEADER_LENGTH,
    SIZE_AT,
    START_ENCRYPTION_EVENT,
    START_EVENT_V3,
)
from engine.binlog.format_description import FormatDescription
from engine.errors import BinlogError, EngineError, EventError

MAGIC = b"\xfebin"
MAGIC_LENGTH = len(MAGIC)
_ENCRYPTED_MAGIC = b"\xfdbin"
"""MySQL 8.0.14 and later, with `binlog_encryption`."""


def open_binlog(path: Path) -> BufferedReader:
    """The opened file, positioned after its magic number.

    Raises `EngineError` if it cannot be opened, and if it is not a binlog or an encrypted one.
    """
    try:
        if path.exists() and not path.is_file():
            raise EngineError(f"{path} is not a binlog: it is not a regular file")
        return after_magic(path.open("rb"), str(path))
    except OSError as error:
        raise EngineError(f"{path} cannot be read: {error.strerror}") from None


def after_magic(file: BufferedReader[Any], where: str) -> BufferedReader[Any]:
    """The opened file, positioned after its magic number; `where` is its path or URL.

    Raises `EngineError` if it is not a binlog, or an encrypted one; it is then closed.
    """
    magic = file.read(MAGIC_LENGTH)
    if magic == MAGIC:
        return file
    file.close()
    if magic == _ENCRYPTED_MAGIC:
        raise EngineError(
            f"{where} is an encrypted binlog, whose key only its server has: read it from that server instead"
        )
    raise EngineError(
        f"{where} is not a binlog: it starts with {magic.hex(' ') or 'nothing'}, not with fe 62 69 6e"
    )


def read_event(file: BufferedReader[Any]) -> bytes:
    """The event at which a file is, as long as its header says, or as there is."""
    header = file.read(HEADER_LENGTH)
    return header + file.read(max(0, int.from_bytes(header[SIZE_AT : SIZE_AT + 4], "little") - len(header)))


def first_format(file: BufferedReader[Any], name: str) -> FormatDescription:
    """The format description with which the file `name` begins, read at its start. Raises `BinlogError`."""
    try:
        return FormatDescription.parse(read_event(file))
    except EventError as error:
        raise BinlogError(name, MAGIC_LENGTH, error.reason) from None


def file_order(name: str) -> tuple[int, str]:
    """The sort key of binlog files: the number at the end of the name, which may gain digits."""
    number = name.rpartition(".")[2]
    return int(number) if number.isdecimal() else 0, name


def read_events(path: Path) -> Iterator[tuple[int, bytes]]:
    """Position and bytes of each event of a file, with checksums, which are not verified.

    Raises the errors of `open_binlog`, and `BinlogError` if the file is damaged, truncated, or encrypted from
    an event on.
    """
    with open_binlog(path) as file:
        size = path.stat().st_size
        position, header_length = MAGIC_LENGTH, OLD_HEADER_LENGTH
        while position < size:
            event = _read_whole(file, path, position, size, header_length)
            if position == MAGIC_LENGTH:
                header_length = _header_length(path, event)
            yield position, event
            if event[4] == START_ENCRYPTION_EVENT:
                reason = "the rest of the file is encrypted: read it from its server instead"
                raise BinlogError(path.name, position, reason)
            position += len(event)


def _read_whole(file: BufferedReader, path: Path, position: int, size: int, header_length: int) -> bytes:
    header = file.read(header_length)
    length = int.from_bytes(header[SIZE_AT : SIZE_AT + 4], "little")
    if len(header) == header_length and length < header_length:
        raise BinlogError(path.name, position, f"an event cannot have {length} bytes")
    if len(header) < header_length or length > size - position:
        reason = "the file ends in the middle of an event: it was cut off, or is still being written"
        raise BinlogError(path.name, position, reason)
    return header + file.read(length - header_length)


def _header_length(path: Path, event: bytes) -> int:
    """The length of the headers of all events after the first one."""
    if event[4] not in (FORMAT_DESCRIPTION_EVENT, START_EVENT_V3) or len(event) < HEADER_LENGTH:
        reason = "a binlog begins with a format description, this file does not"
        raise BinlogError(path.name, MAGIC_LENGTH, reason)
    try:
        return FormatDescription.parse(event).header_length
    except EventError as error:
        raise BinlogError(path.name, MAGIC_LENGTH, error.reason) from None
