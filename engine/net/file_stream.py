"""Local binlog files as a source: the same batches as from a server."""

from __future__ import annotations

from pathlib import Path

from engine.binlog.event_types import HEADER_LENGTH
from engine.binlog.files import MAGIC_LENGTH, open_binlog
from engine.config.decode_options import DecodeOptions
from engine.errors import BinlogError, EngineError
from engine.net.batch_sender import BatchSender
from engine.net.batching.batcher import Batcher
from engine.net.file_batches import file_batches
from engine.net.start_schema import open_schema
from engine.pipeline.child import Child
from engine.pipeline.process_settings import FileSource, SchemaOptions
from engine.pipeline.reports import NetworkProgress


def follow_files(
    child: Child,
    sender: BatchSender,
    origin: FileSource,
    decode: DecodeOptions,
    schema_options: SchemaOptions,
    flavor: str,
) -> None:
    """Stream the files into `sender`; an error is the last batch, after all transactions before it."""
    schema = open_schema(schema_options, flavor, lambda: batcher.stream_position.event)
    batcher = Batcher(
        schema.describe,
        marker=None,
        gtid_set=origin.gtid_set,
        decode=decode,
        skips=origin.skips,
        pool=sender.pool,
        describe_ahead=schema.describe_ahead,
        schema=schema,
        opens_compressed=True,
        meanwhile=child.repeat_progress,
    )
    error: EngineError | None = None
    followers = [path.name for path in origin.files[1:]]
    try:
        for number, (path, following) in enumerate(zip(origin.files, [*followers, None], strict=True)):
            position = origin.position if number == 0 else MAGIC_LENGTH
            try:
                _read_file(child, sender, batcher, path, position, is_last=following is None)
            except BinlogError as damage:
                sender.send(batcher.abandon_file(damage, path.stat().st_size, following))
    except EngineError as failure:
        error = failure
    sender.send(batcher.finish(error))


def _read_file(
    child: Child, sender: BatchSender, batcher: Batcher, path: Path, position: int, *, is_last: bool
) -> None:
    """Raises `BinlogError` for damage after which the start of the next event is unknown."""
    with open_binlog(path) as file:
        sender.send(batcher.begin_file(path.name))
        size = path.stat().st_size
        if position >= size > MAGIC_LENGTH:
            # An earlier run has read or dropped all of it.
            batcher.skip_to(position)
            return
        if position > MAGIC_LENGTH:
            # The events cannot be read without the format description at the start of the file.
            file.readinto(batcher.space()[:HEADER_LENGTH])
            format_size = int.from_bytes(batcher.space()[9:13], "little")
            rest = file.readinto(batcher.space()[HEADER_LENGTH:format_size])
            sender.send(batcher.received(HEADER_LENGTH + rest))
            batcher.skip_to(position)
            file.seek(position)

        def report() -> None:
            child.progress(NetworkProgress(file.tell(), path.name, batcher.position, total=size))

        sender.send(file_batches(batcher, file, path.name, size, is_last=is_last, progress=report))
