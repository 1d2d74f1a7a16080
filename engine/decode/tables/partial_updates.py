"""PARTIAL_UPDATE_ROWS_EVENT (MySQL's `binlog_row_value_options=PARTIAL_JSON`) as a plain update.

Its postimages may contain the changes of a JSON document instead of the document. If the preimage has the
document, the changes are applied to it; if not, the cell becomes a document that lists them, and the column
is flagged as absent from the row image. Row by row in Python, since few servers set that option.
Source: `Rows_log_event::print_verbose_one_row` in MySQL's `log_event.cc`, `pack_row` in `rpl_record.cc`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.binlog import event_types as types
from engine.binlog.event_reader import EventReader
from engine.binlog.event_table import EventTable
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.rows import RowsHeader
from engine.binlog.format_description import FormatDescription
from engine.dataclass import dataclass
from engine.decode.arrow.codec import ABSENT_CELL, error_of_column
from engine.decode.columns.json.diffs import JsonDiff, apply_diffs, diffs_document, read_diffs
from engine.decode.rows.plain_rows import plain_rows_event
from engine.decode.rows.walked_tables import Rows
from engine.decode.tables.table_decoder import TableDecoder
from engine.errors import EventError
from engine.kernels.kernel import Int64s

_PARTIAL_JSON = 1
"""Row value option: a bitmap of the JSON columns that contain differences follows."""
_LENGTH = 4
"""Bytes of a JSON cell's length."""


@dataclass(frozen=True, slots=True)
class JsonUpdate:
    """A JSON cell that the event contains as differences."""

    image: int
    """Index of the row image in the event, preimages included."""
    column: int
    diffs: tuple[JsonDiff, ...]
    applied: bool
    """Whether the cell is the whole document now; otherwise it lists the differences."""


@dataclass(frozen=True, slots=True)
class PlainUpdate:
    """Row images in the layout of an UPDATE_ROWS_EVENT, and the cells that were differences."""

    images: bytes
    updates: tuple[JsonUpdate, ...]


def plain_update(
    body: RowsHeader, names: Sequence[str], widths: Sequence[int], json_columns: Sequence[int]
) -> PlainUpdate:
    """The rows of a PARTIAL_UPDATE_ROWS_EVENT without differences.

    `names` of the table's columns; `widths`: their `Codec.width`; `json_columns`: indexes of JSON ones.
    Raises `EventError` for rows that do not match the columns, and for differences that do not match their
    document.
    """
    if body.column_count != len(widths):
        raise EventError("the rows event has a different number of columns than its table map")
    before = _present(body.columns, len(widths))
    after = _present(body.columns_after or b"", len(widths))
    reader = EventReader(body.rows)
    pieces: list[bytes] = []
    updates: list[JsonUpdate] = []
    images = 0
    while reader.remaining:
        start = reader.offset
        documents = {
            column: cell for column, cell in _cells(reader, before, widths) if column in json_columns
        }
        pieces.append(body.rows[start : reader.offset])
        partial = _partial_columns(reader, json_columns)
        start = reader.offset
        for column, cell in _cells(reader, after, widths):
            if cell is not None and column in partial:
                try:
                    update = JsonUpdate(images + 1, column, read_diffs(cell[_LENGTH:]), column in documents)
                    new_cell = _new_cell(update, documents)
                except EventError as error:
                    raise error_of_column(names[column], error) from error
                updates.append(update)
                pieces += (body.rows[start : reader.offset - len(cell)], new_cell)
                start = reader.offset
        pieces.append(body.rows[start : reader.offset])
        images += 2
    return PlainUpdate(b"".join(pieces), tuple(updates))


def _present(bitmap: bytes, count: int) -> tuple[int, ...]:
    """The indexes of the columns in an image."""
    return tuple(column for column in range(count) if bitmap[column // 8] >> column % 8 & 1)


def _partial_columns(reader: EventReader, json_columns: Sequence[int]) -> frozenset[int]:
    """The JSON columns that are differences in the next postimage; the bitmap covers all JSON columns."""
    options = reader.length_encoded()
    if not options & _PARTIAL_JSON:
        return frozenset()
    bits = reader.uint((len(json_columns) + 7) // 8)
    return frozenset(column for bit, column in enumerate(json_columns) if bits >> bit & 1)


def _cells(
    reader: EventReader, present: Sequence[int], widths: Sequence[int]
) -> Iterator[tuple[int, bytes | None]]:
    """Read an image: each of its columns with its cell, lengths included, or None for NULL."""
    nulls = reader.uint((len(present) + 7) // 8)
    for bit, column in enumerate(present):
        if nulls >> bit & 1:
            yield column, None
        else:
            start, width = reader.offset, widths[column]
            reader.skip(width if width > 0 else reader.uint(-width))
            yield column, reader.data[start : reader.offset]


def _new_cell(update: JsonUpdate, documents: Mapping[int, bytes | None]) -> bytes:
    """The cell that replaces the differences; `documents` are those of the preimage."""
    if update.applied:
        before = documents[update.column]
        if before is None:
            raise EventError("a JSON document was NULL, but has differences")
        document = apply_diffs(before[_LENGTH:], update.diffs)
    else:
        document = diffs_document(update.diffs)
    return len(document).to_bytes(_LENGTH, "little") + document


def plain_updates(
    events: EventTable,
    rows_events: Int64s,
    slots: Int64s,
    decoders: Sequence[TableDecoder | None],
    description: FormatDescription,
) -> tuple[EventTable, dict[int, tuple[JsonUpdate, ...]]]:
    """The same events with partial updates made plain, and per event the differences not applied.

    `rows_events` and `slots` come from `group_events`; `decoders` has one per slot, None if the rows are not
    wanted; such events stay as they are. Raises `EventTableError`.
    """
    if types.PARTIAL_UPDATE_ROWS_EVENT not in events.codes:
        return events, {}
    partial = np.flatnonzero(events.types[rows_events] == types.PARTIAL_UPDATE_ROWS_EVENT)
    content: dict[int, bytes] = {}
    lists: dict[int, tuple[JsonUpdate, ...]] = {}
    for member in partial:
        index, decoder = int(rows_events[member]), decoders[slots[member]]
        if decoder is None:
            continue
        event = events.event(index).tobytes()
        try:
            body = decode_event(event, description).body
            assert isinstance(body, RowsHeader)
            widths = decoder.layout.widths.tolist()
            plain = plain_update(body, decoder.names, widths, decoder.json_columns)
            content[index] = plain_rows_event(event, body, plain.images)
        except EventError as error:
            name = f"{decoder.database}.{decoder.table}"
            raise events.error(index, f"in a row of {name}, {error.reason}", error.corrupt) from error
        lists[index] = tuple(update for update in plain.updates if not update.applied)
    return (events.with_content(content) if content else events), lists


def flag_differences(rows: Rows, rows_events: Int64s, updates: Mapping[int, Sequence[JsonUpdate]]) -> Rows:
    """The rows with the columns that list differences flagged as absent from their images.

    `rows_events`: the events of the rows; `updates`: per event the differences that were not applied.
    """
    starts = np.cumsum(rows.counts) - rows.counts
    images, bitmaps = rows.images.copy(), [bitmap.tobytes() for bitmap in rows.bitmaps]
    size = rows.bitmaps.shape[1]
    for index, first in zip(rows_events.tolist(), starts.tolist(), strict=True):
        for update in updates.get(index, ()):
            number = int(images[first + update.image])
            bitmap = bytearray(bitmaps[number - 1] if number else b"\xff" * size)
            bitmap[update.column // 8] &= ~(1 << update.column % 8) & 0xFF
            if bytes(bitmap) not in bitmaps:
                bitmaps.append(bytes(bitmap))
            images[first + update.image] = bitmaps.index(bytes(bitmap)) + 1
            if not update.diffs:
                # An empty list of differences: nothing changed.
                rows.cells[first + update.image, update.column] = ABSENT_CELL
    flat = np.frombuffer(b"".join(bitmaps), np.uint8)
    return replace(rows, images=images, bitmaps=flat.reshape(-1, size))
