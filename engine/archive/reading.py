"""Reads a part of a file of an archive as batches, alone, from the table definitions at its start.

The first pass and the decoding of a part are the same walk: the batcher of the network process over the
file's bytes, with a follower of the schema model as it was where the part begins.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

import zstandard

from engine.archive.files import READ_ERRORS, ArchiveFile, OpenedFile, open_file, unreadable
from engine.archive.rolled_back import Span
from engine.binlog.files import MAGIC_LENGTH, read_event
from engine.binlog.table_definition import TableDefinition
from engine.config.decode_options import DecodeOptions
from engine.dataclass import dataclass
from engine.errors import BinlogError
from engine.net.batching.batcher import Batcher
from engine.net.batching.dropping import corruption_of
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.batching.schema_follower import Definitions, SchemaFollower
from engine.net.file_batches import file_batches
from engine.pipeline.messages import Corruption
from engine.schema.changes import TableName
from engine.schema.model import SchemaModel

TableKey = tuple[str, str]
"""Database and table; both empty for the events feed."""
_DRAINED_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Reading:
    """What is the same for all files of one read."""

    decode: DecodeOptions
    flavor: str
    """`mysql` or `mariadb`."""
    numbers_unknown: bool = True
    """Columns without certain names are numbered; otherwise they are an error."""
    skips_corrupt: bool = False
    """Corrupt events are dropped with their transactions; otherwise they are an error."""
    given: Mapping[TableName, TableDefinition] = field(default_factory=dict)
    """The user's definitions."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file, with all that decoding its rows needs besides; any process can decode it alone.

    It begins and ends between two transactions, or where the file does.
    """

    file: ArchiveFile
    schema: bytes
    """The schema model at the part's start (`packed_model`)."""
    tables_with_rows: tuple[TableKey, ...] = ()
    """Wanted tables with rows before this part, in the order of their first rows."""
    following: str | None = None
    """Name of the next file of the read; None for the last one, which the server may still be writing."""
    skips: tuple[Corruption, ...] = ()
    """Corrupt events of the part that are known already."""
    begin: int = MAGIC_LENGTH
    """Position of its first event."""
    end: int | None = None
    """Position after its last event; None for the end of the file."""
    entries_before: int = 0
    """Entries of the file before the part (`entry_numbers`)."""
    rolled_back: tuple[Span, ...] = ()
    """Where rows of the file are left out."""


class CorruptFileError(BinlogError):
    """A damaged event; `corruption` is what skips it."""

    def __init__(self, corruption: Corruption) -> None:
        super().__init__(corruption.file, corruption.position, corruption.reason)
        self.corruption = corruption

    def __reduce__(self) -> tuple[type[CorruptFileError], tuple[Corruption]]:
        return type(self), (self.corruption,)


def packed_model(model: SchemaModel) -> bytes:
    """The model for another process; repeated words of many tables take little room."""
    return zstandard.ZstdCompressor().compress(pickle.dumps(model))


def unpacked_model(packed: bytes) -> SchemaModel:
    """The model that `packed_model` packed."""
    model = pickle.loads(zstandard.ZstdDecompressor().decompress(packed))
    assert isinstance(model, SchemaModel)
    return model


def part_batches(
    part: FilePart, model: SchemaModel, reading: Reading, progress: Callable[[], None] = lambda: None
) -> Iterator[OutgoingBatch]:
    """The batches of the part; `model` follows its statements, from the state at the part's start.

    `progress` is called after each piece that was read, and may raise. Raises `CorruptFileError` for damage
    that is not in `part.skips`, and `EngineError` for what cannot be read.
    """
    name = part.file.name
    sources = Definitions(None, reading.given, numbers_unknown=reading.numbers_unknown)
    schema = SchemaFollower(model, reading.flavor, sources, lambda: batcher.stream_position.event)
    batcher = Batcher(
        schema.describe,
        marker=None,
        decode=reading.decode,
        skips=part.skips,
        describe_ahead=schema.describe_ahead,
        schema=schema,
        opens_compressed=True,
    )
    try:
        opened = open_file(part.file, part.end)
        with opened.stream:
            yield from batcher.begin_file(name)
            try:
                if part.begin > MAGIC_LENGTH:
                    yield from _enter(batcher, opened, part.begin)
                is_last = part.following is None and part.end is None
                stream, size = opened.stream, opened.size
                yield from file_batches(batcher, stream, name, size, is_last=is_last, progress=progress)
            except BinlogError as damage:
                yield from batcher.abandon_file(damage, _size(opened), part.following)
            yield from batcher.finish()
    except BinlogError as damage:
        corruption = corruption_of(damage)
        if corruption is None:
            raise
        raise CorruptFileError(corruption) from damage
    except READ_ERRORS as error:
        raise unreadable(part.file, batcher.position, error) from error


def with_skip(
    skips: tuple[Corruption, ...], damage: CorruptFileError, reading: Reading
) -> tuple[Corruption, ...]:
    """The corrupt events to skip when the file is read again, or `damage` raised.

    An event that was to be skipped and ends the reading a second time cannot be skipped.
    """
    known = {(each.file, each.position) for each in skips}
    new = damage.corruption
    if not reading.skips_corrupt or not new.skippable or (new.file, new.position) in known:
        raise damage
    return (*skips, new)


def _enter(batcher: Batcher, opened: OpenedFile, begin: int) -> Iterator[OutgoingBatch]:
    """Continue at `begin`, with the format description at the start of the file."""
    description = read_event(opened.stream)
    batcher.space()[: len(description)] = description
    yield from batcher.received(len(description))
    batcher.skip_to(begin)
    opened.stream.seek(begin)


def _size(opened: OpenedFile) -> int:
    if opened.size is not None:
        return opened.size
    while opened.stream.read(_DRAINED_AT_ONCE):
        pass
    return opened.stream.tell()
