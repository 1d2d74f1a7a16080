"""The events of LOAD DATA INFILE in statement-based replication, from MySQL 3.23 on.

MySQL 3.23 and 4.x: LOAD_EVENT or NEW_LOAD_EVENT, or CREATE_FILE, APPEND_BLOCK and EXEC_LOAD (or DELETE_FILE)
with the file's content. Since 5.0: BEGIN_LOAD_QUERY, APPEND_BLOCK and EXECUTE_LOAD_QUERY with the statement's
text. Source: `Load_log_event`, `sql_ex_info` and `Create_file_log_event` in the servers' `log_event.cc`.
"""

from __future__ import annotations

from typing import Any, Self

from engine.binlog.event_body import EventBody
from engine.binlog.event_reader import EventReader, text
from engine.binlog.event_types import LOAD_EVENT, EventHeader
from engine.binlog.events.statements import Query, read_query
from engine.binlog.format_description import FormatDescription
from engine.dataclass import dataclass
from engine.errors import EventError

_DUPLICATES = {0: "ERROR", 1: "IGNORE", 2: "REPLACE"}
_OPTIONS = {0x1: "DUMPFILE", 0x2: "OPTIONALLY ENCLOSED", 0x4: "REPLACE", 0x8: "IGNORE"}


@dataclass(frozen=True, slots=True)
class Load(EventBody):
    """LOAD_EVENT (delimiters of one character) and NEW_LOAD_EVENT: the clauses of the statement."""

    database: str
    table: str
    file: str
    """The file's name in the statement."""
    columns: tuple[str, ...]
    thread_id: int
    execution_time: int
    skip_lines: int
    fields_terminated: str
    fields_enclosed: str
    lines_terminated: str
    lines_starting: str
    fields_escaped: str
    options: tuple[str, ...]

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """Post header, delimiters, names."""
        post_header = reader.part(fmt.post_header_length(header.type_code))
        load = _read_load(reader, post_header, short_delimiters=header.type_code == LOAD_EVENT)
        return cls(**load, file=text(reader.rest().rstrip(b"\0")))


@dataclass(frozen=True, slots=True)
class CreateFile(Load):
    """CREATE_FILE_EVENT: a LOAD statement with the file's first bytes; APPEND_BLOCK events have the rest."""

    file_id: int
    block: bytes

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """A load's post header, the file's id, the rest of a load, the bytes."""
        post_header = reader.part(fmt.post_header_length(LOAD_EVENT))
        file_id = reader.part(fmt.post_header_length(header.type_code)).uint(4)
        load = _read_load(reader, post_header, short_delimiters=False)
        return cls(**load, file=text(reader.terminated()), file_id=file_id, block=reader.rest())


def _read_load(reader: EventReader, post_header: EventReader, short_delimiters: bool) -> dict[str, Any]:
    """All fields of a `Load` but the file, which is next in the reader."""
    thread_id, execution_time, skip_lines = post_header.uint(4), post_header.uint(4), post_header.uint(4)
    table_length, database_length, column_count = (
        post_header.uint(1),
        post_header.uint(1),
        post_header.uint(4),
    )
    delimiters = [text(reader.take(1 if short_delimiters else reader.uint(1))) for _ in range(5)]
    options = reader.uint(1)
    if short_delimiters:
        empty = reader.uint(1)
        delimiters = ["" if empty & 1 << i else delimiter for i, delimiter in enumerate(delimiters)]
    lengths = reader.take(column_count)
    columns = tuple(_name(reader, length) for length in lengths)
    table, database = _name(reader, table_length), _name(reader, database_length)
    return {
        "database": database,
        "table": table,
        "columns": columns,
        "thread_id": thread_id,
        "execution_time": execution_time,
        "skip_lines": skip_lines,
        "fields_terminated": delimiters[0],
        "fields_enclosed": delimiters[1],
        "lines_terminated": delimiters[2],
        "lines_starting": delimiters[3],
        "fields_escaped": delimiters[4],
        "options": tuple(name for bit, name in _OPTIONS.items() if options & bit),
    }


def _name(reader: EventReader, length: int) -> str:
    name = text(reader.take(length))
    reader.skip(1)
    return name


@dataclass(frozen=True, slots=True)
class FileBlock(EventBody):
    """APPEND_BLOCK_EVENT and BEGIN_LOAD_QUERY_EVENT: a block of the file; the latter has the first one."""

    file_id: int
    block: bytes

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """The file's id, the bytes."""
        return cls(reader.uint(4), reader.rest())


@dataclass(frozen=True, slots=True)
class FileEnd(EventBody):
    """EXEC_LOAD_EVENT: the file is complete, load it. DELETE_FILE_EVENT: the load failed, delete the file."""

    file_id: int

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """The file's id."""
        return cls(reader.uint(4))


@dataclass(frozen=True, slots=True)
class ExecuteLoadQuery(Query):
    """EXECUTE_LOAD_QUERY_EVENT: the file is complete, execute this statement with it."""

    file_id: int
    file_name_start: int
    """Offset in the statement's bytes of the file's name, with its quotes and the keywords around it."""
    file_name_end: int
    duplicates: str
    """What the statement does for duplicate keys: `ERROR`, `IGNORE` or `REPLACE`."""

    @classmethod
    def decode(cls, reader: EventReader, header: EventHeader, fmt: FormatDescription) -> Self:
        """A query with a longer post header."""
        post_header = reader.part(fmt.post_header_length(header.type_code))
        query_part = post_header.part(13)
        file_id, start, end = post_header.uint(4), post_header.uint(4), post_header.uint(4)
        duplicates = post_header.uint(1)
        query = read_query(reader, query_part, fmt)
        length = len(query["statement_bytes"] or query["statement"].encode())
        if duplicates not in _DUPLICATES or not start <= end:
            raise EventError(
                f"the file's name cannot be at {start} to {end} of {length} bytes", reader.offset
            )
        return cls(
            **query,
            file_id=file_id,
            file_name_start=start,
            file_name_end=end,
            duplicates=_DUPLICATES[duplicates],
        )
