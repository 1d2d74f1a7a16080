"""Streams with corrupt events: read as often as the command would start a run, committed as a sink would."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.binlog import event_types as types
from engine.config.decode_options import DecodeOptions
from engine.errors import BinlogError, EngineError
from engine.net.batching.batcher import Batcher
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.pipeline.messages import Corruption
from tests.support.batches import decode_all, packets_of
from tests.support.binlog_builder import MARIADB, MYSQL, Part, binlog
from tests.support.made_events import (
    SIGNED_INT,
    gtid,
    image,
    integer,
    mariadb_gtid,
    payload,
    query,
    rows,
    table_map,
    xid,
)

FILE, NEXT_FILE = "binlog.000001", "binlog.000002"

START = 4

TABLE = table_map(7, [SIGNED_INT])

BEGIN = query("BEGIN")

MOST_RUNS = 12

EVERYTHING = DecodeOptions()


def insert(*numbers: int, version: int = 2) -> Part:
    kind = types.WRITE_ROWS_EVENT if version == 2 else types.WRITE_ROWS_EVENT_V1
    return rows(kind, 7, 1, [image([integer(number)]) for number in numbers])


TRUNCATED = rows(types.WRITE_ROWS_EVENT, 7, 1, [image([integer(99)])[:-2]])
"""A row image that ends in the middle of its cell."""

TOO_MANY_COLUMNS = rows(types.WRITE_ROWS_EVENT, 7, 200, [image([integer(99)])])
"""A rows event with more columns than its table has."""


@dataclass
class Emitted:
    """What all runs emitted, as a sink would have committed it."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    gtids: list[str] = field(default_factory=list)
    hidden: bool = False
    doubtful: list[int] = field(default_factory=list)
    resume: tuple[str, int] = ("", 0)
    error: str | None = None
    skips: tuple[Corruption, ...] = ()

    @property
    def numbers(self) -> list[int]:
        return [row["@1"] for row in self.rows if "@1" in row]


def stream(
    files: Sequence[Sequence[bytes]],
    skips: Sequence[Corruption],
    *,
    packets: bool,
    batch_bytes: int,
    chunk: int,
    options: DecodeOptions = EVERYTHING,
) -> list[OutgoingBatch]:
    """What a network process makes of the files, up to the end or the first thing that it cannot pass."""
    reader = Batcher(
        lambda table_map: None,
        file=FILE,
        checksum_algorithm=1,
        marker=1 if packets else None,
        gtid_set="",
        batch_bytes=batch_bytes,
        skips=skips,
        opens_compressed=True,
        decode=options,
    )
    batches: list[OutgoingBatch] = []
    error: EngineError | None = None
    names = [FILE, NEXT_FILE]
    try:
        for name, following, events in zip(names, [*names[1 : len(files)], None], files, strict=False):
            content = packets_of(events) if packets else b"".join(events)
            if not packets:
                batches += reader.begin_file(name)
            try:
                at = 0
                while at < len(content):
                    space = reader.space()
                    taken = min(chunk, len(space), len(content) - at)
                    space[:taken] = content[at : at + taken]
                    at += taken
                    batches += reader.received(taken, last=at == len(content))
                if reader.missing or reader.inside_transaction:
                    raise BinlogError(name, reader.position, "cut off", corrupt=following is not None)
            except BinlogError as damage:
                if packets:
                    raise
                batches += reader.abandon_file(damage, START + len(content), following)
    except BinlogError as failure:
        error = failure
    return [*batches, *reader.finish(error)]


def committed(
    batches: Sequence[OutgoingBatch], options: DecodeOptions = EVERYTHING
) -> tuple[Emitted, Corruption | None]:
    """What a sink keeps of the batches; and the corrupt event that ended them."""
    emitted = Emitted()
    open_batches: list[tuple[Any, dict[str, list[dict[str, Any]]]]] = []
    for batch in batches:
        decoded = decode_all([batch], options)
        (result,) = decoded.results
        if result.status.aborts_transaction:
            open_batches.clear()
        open_batches.append((result, decoded.rows))
        failure = result.status.failure
        if result.status.ends_transaction and (not failure or result.ordinals or result.transactions):
            for kept, tables in open_batches:
                emitted.rows += tables.get("orders", [])
                feed = tables.get("", [])
                emitted.records += [row for row in feed if row["type"] == "CORRUPT_EVENT"]
                emitted.rows += [row for row in feed if row["type"] != "CORRUPT_EVENT"]
                emitted.gtids += [
                    f"{number}" for _, first, last in kept.gtids for number in range(first, last + 1)
                ]
                emitted.hidden |= kept.gtid_set_lost
                emitted.doubtful += [first for _, first, _ in kept.doubtful_gtids]
            emitted.resume = result.status.resume.file, result.status.resume.position
            open_batches.clear()
        if failure is not None:
            emitted.error = failure.message
            return emitted, failure.corruption
    return emitted, None


def skipping(
    *files: Sequence[bytes],
    packets: bool = False,
    batch_bytes: int = 1 << 16,
    chunk: int = 1 << 20,
    options: DecodeOptions = EVERYTHING,
) -> Emitted:
    """Run until nothing corrupt ends a run any more."""
    skips: tuple[Corruption, ...] = ()
    while True:
        batches = stream(files, skips, packets=packets, batch_bytes=batch_bytes, chunk=chunk, options=options)
        emitted, met = committed(batches, options)
        emitted.rows.sort(key=lambda row: (row["_file"], row["_pos"], row["_seq"]))
        emitted.skips = skips
        seen = met is not None and any(
            (place.file, place.position) == (met.file, met.position) for place in skips
        )
        if met is None or seen or not met.skippable:
            return emitted
        skips += (met,)
        assert len(skips) < MOST_RUNS, skips


def place_of(events: Sequence[bytes], number: int) -> int:
    return START + sum(map(len, events[:number]))


def flipped(events: Sequence[bytes], number: int, at: int = -5) -> list[bytes]:
    """The events with a bit of one of them changed."""
    damaged = bytearray(events[number])
    damaged[at] ^= 0x40
    return [*events[:number], bytes(damaged), *events[number + 1 :]]


def details(record: dict[str, Any]) -> dict[str, Any]:
    return json.loads(record["data"])


MYSQL_EVENTS = binlog(
    [
        (types.PREVIOUS_GTIDS_LOG_EVENT, bytes(8)),
        *(gtid(1), BEGIN, TABLE, insert(1, 2), insert(3), xid()),
        *(gtid(2), BEGIN, TABLE, insert(4), TABLE, insert(5), insert(6), xid()),
        *(gtid(3), payload([BEGIN, TABLE, insert(7), insert(8), xid()])),
        *(gtid(4), BEGIN, TABLE, insert(9), query("COMMIT")),
        *(gtid(5), query("CREATE TABLE other (a int)")),
        *(gtid(6), BEGIN, TABLE, insert(10), xid()),
    ],
    MYSQL,
)

MARIADB_EVENTS = binlog(
    [
        (types.GTID_LIST_EVENT, bytes(4)),
        *(mariadb_gtid(1), TABLE, insert(1, 2, version=1), insert(3, version=1), xid()),
        *(mariadb_gtid(2), TABLE, insert(4, version=1), TABLE, insert(5, 6, version=1), query("COMMIT")),
        *(mariadb_gtid(3, flags=1), query("CREATE TABLE other (a int)")),
        *(mariadb_gtid(4), TABLE, insert(7, version=1), xid()),
    ],
    MARIADB,
)

STREAMS = {"MySQL": MYSQL_EVENTS, "MariaDB": MARIADB_EVENTS}

GTIDS = (types.GTID_LOG_EVENT, types.GTID_EVENT)


def transaction_of(events: Sequence[bytes], number: int) -> tuple[int, int]:
    """First event of the transaction that holds event `number`, and the one after its last."""
    begins = [place for place, event in enumerate(events) if event[4] in GTIDS]
    first = max((place for place in begins if place <= number), default=None)
    if first is None:
        return number, number + 1
    return first, min((place for place in begins if place > number), default=len(events))


def without(emitted: Emitted, start: int, end: int) -> list[dict[str, Any]]:
    return [content(row) for row in emitted.rows if not start <= row["_pos"] < end]


def content(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "_seq"}
