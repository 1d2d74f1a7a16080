"""Tables whose table maps were received but not reached: the server can be asked about all of them at once.

A stream usually names most of its tables within its first megabyte, and a question takes as long for one
table as for ten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from engine.binlog.event_types import QUERY_EVENT
from engine.binlog.format_description import FormatDescription, verify_checksum
from engine.binlog.table_map import TableMap
from engine.config.table_filter import TableFilter
from engine.errors import EngineError
from engine.kernels.kernel import Int64s
from engine.net.batching import receive_kernel
from engine.net.batching.receive_buffer import ReceiveBuffer
from engine.net.batching.table_book import TableBook

DescribeTables = Callable[[Mapping[int, TableMap]], Mapping[int, bytes | None]]
"""Describes many tables as the batcher's catalog does one, with one question; leaves those out that it cannot
describe."""
_MOST_TABLES = 256
"""To ask about at once."""


def table_hash(event: bytes) -> int:
    """The receive kernel's hash of a table map (without checksum)."""
    return receive_kernel.table_map_hash(np.frombuffer(bytearray(event), np.uint8), 0, len(event))


def tables_ahead(
    buffer: ReceiveBuffer, places: Int64s, description: FormatDescription, marker: int
) -> dict[int, TableMap]:
    """By hash the table maps from the cursor on that `places` (of a `TableBook`) does not know.

    No statement that may define a table comes before them, so they mean what they would at the cursor.
    Damaged ones are left out.
    """
    found = np.empty((_MOST_TABLES, 2), np.int64)
    count = receive_kernel.unknown_tables(
        buffer.data,
        buffer.filled,
        buffer.state,
        places,
        marker,
        description.post_header_length(QUERY_EVENT),
        description.checksum_length,
        found,
    )
    bare = description.without_checksums()
    ahead: dict[int, TableMap] = {}
    for start, size in found[:count].tolist():
        event = buffer.data[start : start + size].tobytes()
        try:
            verify_checksum(event, description)
            event = event[: size - description.checksum_length]
            ahead[table_hash(event)] = TableMap.parse(event, bare)
        except EngineError:
            # Whoever gets there will say so.
            continue
    return ahead


def learn_ahead(
    ahead: Mapping[int, TableMap],
    book: TableBook,
    describe_ahead: DescribeTables,
    tables: TableFilter,
    stamp: int,
) -> None:
    """Describe them with one question for all that anybody wants.

    What cannot be described, or not now, has its turn when the kernel gets there.
    """
    wanted = {value: each for value, each in ahead.items() if tables.wants(each.database, each.table)}
    if wanted:
        described = describe_ahead(wanted)
        names = {value: f"{wanted[value].database}.{wanted[value].table}" for value in described}
        book.learn_ahead(names, described, stamp)
