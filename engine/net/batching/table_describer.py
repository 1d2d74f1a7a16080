"""Descriptions of the tables that a stream's table maps announce.

When the kernel meets an unknown table map, the bytes that were received after it are searched for others, and
one question describes all of them: a stream usually names most of its tables within its first megabyte, and a
question takes as long for one table as for ten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from engine.binlog.event_types import QUERY_EVENT
from engine.binlog.format_description import FormatDescription, verify_checksum
from engine.binlog.table_definition import table_key
from engine.binlog.table_map import TableMap
from engine.errors import EngineError
from engine.kernels.kernel import Int64s
from engine.net.batching.definition_table import table_map_hash
from engine.net.batching.event_filter import EventFilter
from engine.net.batching.receive_buffer import ReceiveBuffer
from engine.net.batching.stream_state import StreamState
from engine.net.batching.table_book import Definition
from engine.net.batching.table_map_search import search_table_maps

DescribeTable = Callable[[TableMap], bytes | None]
"""Describes a table whose table map is incomplete; None if it is complete or cannot be completed."""
DescribeTables = Callable[[Mapping[int, TableMap]], Mapping[int, bytes | None]]
"""The same for many tables with one question; the result lacks those that cannot be described."""

_MOST_TABLES = 512
"""Tables of one question; a power of two."""


class TableDescriber:
    """Makes definitions of table maps; `describe_ahead` is None where tables are described one by one."""

    def __init__(
        self, tables: EventFilter, describe: DescribeTable, describe_ahead: DescribeTables | None
    ) -> None:
        self._filter = tables
        self._describe = describe
        self._describe_ahead = describe_ahead

    def define(self, value: int, table_map: TableMap) -> Definition:
        """The definition of a table map with that hash; unwanted tables are not described."""
        wanted = self._filter.wants(table_map.database, table_map.table)
        description = self._describe(table_map) if wanted else None
        return Definition(value, _name(table_map), description, wanted)

    def define_all(
        self,
        buffer: ReceiveBuffer,
        state: StreamState,
        known: Int64s,
        fmt: FormatDescription,
        marker: int,
    ) -> list[Definition]:
        """The definitions of tables whose table maps are in the buffer from the cursor on, and not `known`.

        A table that cannot be described now is left out.
        """
        if self._describe_ahead is None:
            return []
        found = unknown_table_maps(buffer, state, known, fmt, marker)
        wanted = {
            value: each for value, each in found.items() if self._filter.wants(each.database, each.table)
        }
        described = self._describe_ahead(wanted) if wanted else {}
        return [
            *(Definition(value, _name(wanted[value]), packed) for value, packed in described.items()),
            *(Definition(value, _name(found[value]), None, False) for value in found.keys() - wanted.keys()),
        ]


def hash_of(event: bytes) -> int:
    """The receive kernel's hash of a table map without checksum."""
    return table_map_hash(np.frombuffer(bytearray(event), np.uint8), 0, len(event))


def unknown_table_maps(
    buffer: ReceiveBuffer, state: StreamState, known: Int64s, fmt: FormatDescription, marker: int
) -> dict[int, TableMap]:
    """By hash, the table maps from the cursor on that are not in `known`, the kernel's table of definitions.

    No statement that may define a table comes before them, so that their tables are as they are at the
    cursor. Damaged ones are left out.
    """
    found = np.empty((_MOST_TABLES, 2), np.int64)
    count = search_table_maps(
        buffer.data,
        buffer.filled,
        state.array,
        known,
        marker,
        fmt.post_header_length(QUERY_EVENT),
        fmt.checksum_length,
        found,
    )
    bare = fmt.without_checksums()
    table_maps: dict[int, TableMap] = {}
    for start, size in found[:count].tolist():
        event = buffer.data[start : start + size].tobytes()
        try:
            verify_checksum(event, fmt)
            event = event[: size - fmt.checksum_length]
            table_maps[hash_of(event)] = TableMap.parse(event, bare)
        except EngineError:
            # The error is raised when the stream reaches the table map.
            continue
    return table_maps


def _name(table_map: TableMap) -> str:
    return table_key(table_map.database, table_map.table)
