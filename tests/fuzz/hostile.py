"""Damaged binlogs: real events with flipped bits, cut or lengthened, with lying lengths and true checksums.

`damaged` draws a case, `check` puts it through batcher and decoder, and through the search for statements.
`python -m tests.fuzz.hostile` does so many times in a process of its own, which may crash: the case that it
tries is in a file by then.
"""

from __future__ import annotations

import argparse
import faulthandler
import gzip
import re
import resource
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from random import Random

import msgpack
import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from engine.binlog import event_types as types
from engine.binlog.event_types import EVENT_NAMES, HEADER_LENGTH
from engine.binlog.events.decoding import decode_event
from engine.binlog.events.payload import LARGEST_WHOLE, TransactionPayload, inner_events
from engine.binlog.events.rows import RowsHeader
from engine.binlog.files import MAGIC_LENGTH
from engine.binlog.format_description import FormatDescription, has_checksum_field
from engine.binlog.position import BinlogPosition
from engine.binlog.samples import sample_binlogs
from engine.commands.compile_kernels import compile_kernels
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import EVERY_TABLE, TableFilter
from engine.decode.batch import BatchDecoder
from engine.errors import BinlogError, EventError
from engine.net.batching.batcher import Batcher, ServerErrorPacket
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.batching.statement_search import StatementSearch
from engine.output.change_schema import transit_schema
from engine.pipeline.messages import Corruption
from tests.fuzz.make_corpus import CORPUS
from tests.support.batches import packets_of
from tests.support.binlog_builder import binlog
from tests.support.every_event import BODIES, ONE_TRANSACTION, binlog_of
from tests.support.made_events import gtid, mariadb_compressed, payload_of
from tests.support.plain_search import Damaged, PlainSearch
from tests.support.transaction_pictures import PICTURES, parts_of

FILE = "hostile.000001"
LOCATED = re.compile(r".* at position \d+: .+", re.DOTALL)
CASE_SECONDS = 60
MOST_CORRUPT = 40
"""Events of a case are fewer."""
STATE = Path(tempfile.gettempdir()) / "binlog-engine-hostile.case"
SPARE_MEMORY = 4 << 30
"""Bytes that one case may ask for beyond what the process has: wrong sizes must not be trusted."""

_SIZE_AT, _TYPE_AT = 9, 4
_PLAIN = FormatDescription.assumed()


@dataclass(frozen=True)
class Source:
    """A file's events without checksums, the format description first."""

    name: str
    events: tuple[bytes, ...]
    starts: tuple[int, ...]
    """Where transactions start, as indexes into `events`."""


@dataclass(frozen=True)
class Case:
    """What is put through the engine, and how."""

    description: str
    stream: bytes
    packets: bool
    chunk: int
    batch_bytes: int
    filtered: bool
    """Whether only some tables are wanted."""


def _source(name: str, events: list[bytes]) -> Source:
    checked = FormatDescription.parse(events[0]).checksum_length > 0
    stripped = [event[:-4] if checked else event for event in events]
    if not checked and has_checksum_field(FormatDescription.parse(events[0]).server_version):
        stripped[0] = stripped[0][:-4]
    begins = (
        types.GTID_LOG_EVENT,
        types.GTID_EVENT,
        types.ANONYMOUS_GTID_LOG_EVENT,
        types.GTID_TAGGED_LOG_EVENT,
    )
    starts = [place for place, event in enumerate(stripped) if event[_TYPE_AT] in begins]
    return Source(name, tuple(stripped), tuple(starts) or (1,))


def _split(content: bytes) -> Iterator[list[bytes]]:
    """The events of files that were put one after the other."""
    events: list[bytes] = []
    at = 0
    while at < len(content):
        size = int.from_bytes(content[at + _SIZE_AT : at + _SIZE_AT + 4], "little")
        if content[at + _TYPE_AT] == types.FORMAT_DESCRIPTION_EVENT and events:
            yield events
            events = []
        events.append(content[at : at + size])
        at += size
    yield events


@cache
def sources() -> tuple[Source, ...]:
    """Everything that there is to damage."""
    found = [
        _source(name, binlog(parts_of(picture), version)) for name, (version, picture) in PICTURES.items()
    ]
    found.append(_source("every event", binlog_of([gtid(1), *ONE_TRANSACTION, *BODIES.items()])))
    files = [(path.name, path.read_bytes()[4:]) for path in sample_binlogs()]
    files += [(path.name, gzip.decompress(path.read_bytes())) for path in sorted(CORPUS.glob("*.gz"))]
    for name, content in files:
        found += [_source(name, events) for events in _split(content) if len(events) > 1]
    return tuple(found)


def _resized(event: bytes, checksum: int) -> bytes:
    return event[:_SIZE_AT] + (len(event) + checksum).to_bytes(4, "little") + event[_SIZE_AT + 4 :]


NUMBERS = (
    0,
    1,
    2,
    7,
    8,
    0x7F,
    0x80,
    0xFA,
    0xFB,
    0xFC,
    0xFD,
    0xFE,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0xFFFFFFFF,
)


def _place(rng: Random, event: bytes) -> int:
    """Mostly in the body."""
    least = HEADER_LENGTH if rng.randrange(8) and len(event) > HEADER_LENGTH else 0
    return rng.randrange(least, len(event)) if len(event) > least else 0


def _flip(rng: Random, event: bytes) -> bytes:
    at = _place(rng, event)
    return event[:at] + bytes([event[at] ^ 1 << rng.randrange(8)]) + event[at + 1 :]


def _number(rng: Random, event: bytes) -> bytes:
    at, size = _place(rng, event), rng.choice((1, 2, 3, 4, 8))
    number = rng.choice((*NUMBERS, len(event), len(event) - at, len(event) - at - size)) & (1 << 8 * size) - 1
    return event[:at] + number.to_bytes(size, "little") + event[at + size :]


def _cut(rng: Random, event: bytes) -> bytes:
    return event[: max(HEADER_LENGTH, rng.randrange(len(event) + 1))]


def _lengthen(rng: Random, event: bytes) -> bytes:
    return event + bytes(rng.choice((0, 0xFF, rng.randrange(256))) for _ in range(rng.randint(1, 40)))


def _remove(rng: Random, event: bytes) -> bytes:
    at = _place(rng, event)
    return event[:at] + event[at + rng.randint(1, 8) :] if at >= HEADER_LENGTH else event


def _insert(rng: Random, event: bytes) -> bytes:
    at = _place(rng, event)
    return (
        event[:at] + bytes([rng.randrange(256)]) * rng.randint(1, 8) + event[at:]
        if at >= HEADER_LENGTH
        else event
    )


def _type(rng: Random, event: bytes) -> bytes:
    return event[:_TYPE_AT] + bytes([rng.choice((*EVENT_NAMES, 255))]) + event[_TYPE_AT + 1 :]


def _inside(rng: Random, event: bytes) -> bytes:
    """Damage what is compressed, and compress it again."""
    try:
        body = decode_event(_resized(event, 0), _PLAIN).body
        if event[_TYPE_AT] == types.TRANSACTION_PAYLOAD_EVENT:
            assert isinstance(body, TransactionPayload)
            events = list(inner_events(body))
            at = rng.randrange(len(events))
            events[at] = _resized(rng.choice(DAMAGES)(rng, events[at]), 0)
            # The network process expands it, or a decoder.
            claims = rng.choice((None, LARGEST_WHOLE + 1))
            return event[:HEADER_LENGTH] + payload_of(b"".join(events), claims=claims)[1]
        if event[_TYPE_AT] in types.ROWS_EVENTS and types.ROWS_EVENTS[event[_TYPE_AT]].compressed:
            assert isinstance(body, RowsHeader)
            packed = mariadb_compressed(body.rows)
            fixed = event[: len(event) - len(packed)]
            return fixed + mariadb_compressed(rng.choice(DAMAGES)(rng, body.rows + bytes(HEADER_LENGTH)))
    except (EventError, IndexError):
        pass
    return _flip(rng, event)


DAMAGES: tuple[Callable[[Random, bytes], bytes], ...] = (
    *(_flip, _flip, _number, _number, _cut, _lengthen, _remove, _insert),
)
_OUTER_DAMAGES = (*DAMAGES, _type, _inside, _inside)


def damaged(rng: Random) -> Case:
    """Some of all events, damaged."""
    return delivered(rng, damage(rng, rng.choice(sources())))


def damage(rng: Random, source: Source) -> Source:
    """A few events in a row with some damage; the name says which."""
    start = rng.choice(source.starts) if rng.randrange(4) else rng.randrange(1, len(source.events))
    events = list(source.events[: 1 if start else 0] + source.events[start : start + rng.randint(1, 12)])
    done = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        place = rng.randrange(1, len(events)) if len(events) > 1 and rng.randrange(20) else 0
        kind = rng.randrange(12)
        if kind == 0:
            events.insert(place, events[rng.randrange(len(events))])
            done.append(f"event {place} twice")
        elif kind == 1 and place:
            del events[place]
            done.append(f"event {place} left out")
        else:
            kind_of_damage = rng.choice(_OUTER_DAMAGES)
            events[place] = kind_of_damage(rng, events[place])
            done.append(f"{kind_of_damage.__name__[1:]} in event {place}")
    return Source(f"{source.name}: {', '.join(done)}", tuple(events), (1,))


def delivered(rng: Random, source: Source) -> Case:
    """The events with checksums or without, in some wrapping and in pieces of some size."""
    events = list(source.events)
    with_checksums = _checksums(rng, events)
    whole = [
        _finished(rng, event, with_checksums or (place == 0 and _is_new(events)))
        for place, event in enumerate(events)
    ]
    packets = bool(rng.randrange(2))
    stream = packets_of(whole) if packets else b"".join(whole)
    if not rng.randrange(20):
        stream = stream[: rng.randrange(len(stream) + 1)]
    chunk = rng.choice((1 << 20, 1 << 20, rng.randint(1, 300)))
    batch_bytes = rng.choice((1 << 16, 1 << 16, rng.randint(200, 2000)))
    filtered = not rng.randrange(3)
    return Case(source.name, stream, packets, chunk, batch_bytes, filtered)


def _is_new(events: list[bytes]) -> bool:
    """Whether the format description has a checksum always."""
    version = events[0][HEADER_LENGTH + 2 : HEADER_LENGTH + 52].split(b"\0")[0].decode("latin-1")
    return has_checksum_field(version)


def _checksums(rng: Random, events: list[bytes]) -> bool:
    """Decide whether events have checksums, and have the format description say so."""
    if not _is_new(events):
        return False
    wanted = bool(rng.randrange(2))
    if rng.randrange(20):
        events[0] = events[0][:-1] + bytes([wanted])
    return wanted


def _finished(rng: Random, event: bytes, checksum: bool) -> bytes:
    """The event with its true size, mostly, and its checksum."""
    if rng.randrange(25):
        event = _resized(event, 4 if checksum else 0)
    return event + zlib.crc32(event).to_bytes(4, "little") if checksum else event


_ROOM = 1 << 12
"""Enough for some of the messages, so that others need memory of their own."""


class Decoders:
    """A decoder for all tables, and one for some."""

    def __init__(self) -> None:
        self._by_filter = {
            filtered: DecodeOptions(tables, bookkeeping_events=not filtered)
            for filtered, tables in ((False, EVERY_TABLE), (True, TableFilter(("*.pk", "*.orders", "*.t*"))))
        }
        self._decoders = {filtered: BatchDecoder(options) for filtered, options in self._by_filter.items()}

    def options(self, case: Case) -> DecodeOptions:
        """What the batcher has to know of the decoder."""
        return self._by_filter[case.filtered]

    def decoder(self, case: Case) -> BatchDecoder:
        """The decoder for a case."""
        return self._decoders[case.filtered]


def check(case: Case, decoders: Decoders) -> str | None:
    """Put the case through the engine; returns the error that came out, which is a located one, or raises.

    Then once more for each corrupt event, to go past it, as with `--on-corrupt skip`. In packets, statements
    are searched for as well, which a slow search checks.
    """
    if case.packets:
        _search(case)
    first, met = _run_through(case, decoders, ())
    skips: tuple[Corruption, ...] = ()
    while met is not None and met.position not in [place.position for place in skips]:
        skips += (met,)
        assert len(skips) <= MOST_CORRUPT, skips
        _, met = _run_through(case, decoders, skips)
    return first


def _run_through(
    case: Case, decoders: Decoders, skips: tuple[Corruption, ...]
) -> tuple[str | None, Corruption | None]:
    """One run, as far as it goes: its error, and the corrupt event that this is about."""
    batcher = Batcher(
        lambda table_map: None,
        file=FILE,
        marker=1 if case.packets else None,
        batch_bytes=case.batch_bytes,
        gtid_set="",
        decode=decoders.options(case),
        opens_compressed=True,
        skips=skips,
        describe_ahead=dict.fromkeys,
    )
    batches: list[OutgoingBatch] = []
    error, at = None, 0
    try:
        while at < len(case.stream) and not batcher.ended:
            space = batcher.space()
            taken = min(case.chunk, len(space), len(case.stream) - at)
            space[:taken] = case.stream[at : at + taken]
            at += taken
            batches += batcher.received(taken, last=at == len(case.stream))
    except (BinlogError, ServerErrorPacket) as failure:
        assert isinstance(failure, ServerErrorPacket) or LOCATED.fullmatch(str(failure)), str(failure)
        error = failure
    if isinstance(error, BinlogError) and not case.packets:
        with suppress(BinlogError):
            batches += batcher.abandon_file(error, len(case.stream) + 4, None)
            error = None
    batches += batcher.finish(error)
    for number, batch in enumerate(batches):
        assert batch.header.sequence == number
        # Nothing is after the last event, so that no kernel reads beyond it unnoticed.
        decoder, memory = decoders.decoder(case), np.empty(_ROOM, np.uint8)
        result, frames = decoder.decode(batch.header, batch.index, np.array(batch.data), memory)
        for table, frame in zip(result.tables, frames, strict=True):
            schema = pa.ipc.read_schema(pa.py_buffer(table.schema))
            read = pa.ipc.read_record_batch(pa.py_buffer(frame), transit_schema(schema))
            read.validate(full=True)
            numbers = np.frombuffer(frame, np.int64, table.rows, table.sequence_at)
            assert read.column("_seq").to_pylist() == numbers.tolist()
        ended = result.status.failure
        if ended is not None:
            assert ended.message == str(error) or LOCATED.fullmatch(ended.message), ended.message
            return ended.message, ended.corruption
    return None, None


def _search(case: Case) -> None:
    start = BinlogPosition(FILE, MAGIC_LENGTH)
    slow, search = PlainSearch(start, checksum_algorithm=0), StatementSearch(start, checksum_algorithm=0)
    with suppress(Damaged):
        slow.read(case.stream)
    found: list[tuple[BinlogPosition, str]] = []
    at = 0
    try:
        while at < len(case.stream) and not search.ended:
            space = search.space()
            taken = min(case.chunk, len(space), len(case.stream) - at)
            space[:taken] = case.stream[at : at + taken]
            at += taken
            found += ((each.position, each.query.statement) for each in search.received(taken))
    except (BinlogError, ServerErrorPacket) as failure:
        assert isinstance(failure, ServerErrorPacket) or LOCATED.fullmatch(str(failure)), str(failure)
    assert found == slow.found


def save(case: Case, path: Path) -> None:
    """Write the case down for `--repeat`."""
    path.write_bytes(msgpack.packb(astuple(case)))


def load(path: Path) -> Case:
    """The case that was saved."""
    return Case(*msgpack.unpackb(path.read_bytes()))


def limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE_MEMORY, resource.RLIM_INFINITY))


def run(cases: int, number: int, state: Path) -> tuple[int, int]:
    """So many cases, chosen by `number`; how many there were, and how many of them were refused."""
    decoders = Decoders()
    tried = refused = 0

    @seed(number)
    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=False))
    def try_case(rng: Random) -> None:
        nonlocal tried, refused
        case = damaged(rng)
        save(case, state)
        faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)
        try:
            tried, refused = tried + 1, refused + (check(case, decoders) is not None)
        finally:
            faulthandler.cancel_dump_traceback_later()

    try_case()
    return tried, refused


def main() -> None:
    """Try cases; a failure is shrunk and shown, and is in the state file."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=0.0, help="go on for so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, default=STATE, help="the case under way")
    parser.add_argument("--repeat", type=Path, help="try this one case")
    options = parser.parse_args()
    if options.repeat:
        case = load(options.repeat)
        print(case.description, "→", check(case, Decoders()))
        return
    print(f"a case that fails or crashes is left in {options.state}, for --repeat", file=sys.stderr)
    faulthandler.enable()
    compile_kernels()
    sources()
    limit_memory()
    end = time.monotonic() + options.seconds
    tried = refused = 0
    number = options.seed
    while not tried or time.monotonic() < end:
        more, of_them = run(options.cases, number, options.state)
        tried, refused, number = tried + more, refused + of_them, number + 1
    options.state.unlink()
    print(f"{tried} cases, {refused} of them refused", file=sys.stderr)


if __name__ == "__main__":
    main()
