"""Streams of events through the batcher and the decoder, without a process or a socket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from engine.binlog.files import read_events
from engine.config.decode_options import DecodeOptions
from engine.decode.batch import BatchDecoder
from engine.net.batching.batcher import Batcher
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.output.change_schema import CHANGE_TYPES, transit_schema
from engine.output.reader import decode_batch, merged_schema
from engine.pipeline.messages import Result

LARGEST_PACKET = 0xFFFFFF
ROOM = 1 << 16
"""Too small for large batches, which then take memory of their own."""


def events_of(path: Path) -> list[bytes]:
    """All events of a file."""
    return [event for _, event in read_events(path)]


def packets_of(events: Iterable[bytes]) -> bytes:
    """The events as a server sends them: a marker before each, large ones in several packets."""
    stream = bytearray()
    sequence = 1
    for event in events:
        rest = b"\0" + event
        while True:
            part, rest = rest[:LARGEST_PACKET], rest[LARGEST_PACKET:]
            stream += len(part).to_bytes(3, "little") + bytes([sequence % 256]) + part
            sequence += 1
            if len(part) < LARGEST_PACKET:
                break
    return bytes(stream)


def feed(batcher: Batcher, stream: bytes, chunks: Iterable[int]) -> Iterator[OutgoingBatch]:
    """Hand the stream to the batcher in pieces of these sizes (the rest in one go)."""
    sizes = iter(chunks)
    at = 0
    while at < len(stream):
        space = batcher.space()
        taken = min(next(sizes, len(stream)), len(space), len(stream) - at)
        space[:taken] = stream[at : at + taken]
        at += taken
        yield from batcher.received(taken)
    yield from batcher.finish()


@dataclass
class Decoded:
    """What a run of batches decoded to."""

    results: list[Result]
    rows: dict[str, list[dict[str, Any]]]
    """Table name (empty for the events feed) → its rows in plain types, `_seq` counting on over batches."""

    @property
    def error(self) -> str | None:
        failures = (result.status.failure for result in self.results)
        return next((failure.message for failure in failures if failure), None)


def to_file_batch(batch: pa.RecordBatch, file_schema: pa.Schema, sequence_base: int) -> pa.RecordBatch:
    """A batch in transit as its file has it, converted by Arrow instead of in place."""
    columns = batch.columns
    sequence = file_schema.get_field_index("_seq")
    columns[sequence] = pa.array(np.add(columns[sequence].to_numpy(), sequence_base))
    change_type = file_schema.get_field_index("_change_type")
    if change_type >= 0:
        values = pa.array(CHANGE_TYPES, pa.string())
        columns[change_type] = pa.DictionaryArray.from_arrays(columns[change_type], values)
    return pa.RecordBatch.from_arrays(columns, schema=file_schema)


def decode_all(batches: Sequence[OutgoingBatch], options: DecodeOptions | None = None) -> Decoded:
    """Decode batches one by one, each with a decoder that has seen none of the others."""
    decoded = Decoded([], {})
    base = 0
    for batch in batches:
        data = np.array(batch.data)
        decoder = BatchDecoder(options or DecodeOptions())
        result, messages = decoder.decode(batch.header, batch.index, data, np.empty(ROOM, np.uint8))
        decoded.results.append(result)
        for table, frame in zip(result.tables, messages, strict=True):
            schema = pa.ipc.read_schema(pa.py_buffer(table.schema))
            transit = pa.ipc.read_record_batch(pa.py_buffer(frame), transit_schema(schema))
            transit.validate(full=True)
            plain = decode_batch(to_file_batch(transit, schema, base), merged_schema([schema]))
            decoded.rows.setdefault(table.table, []).extend(plain.to_pylist())
        base += result.ordinals
    return decoded
