"""Local binlog files as a source: the same batches as from a server, without one."""

from __future__ import annotations

from pathlib import Path

from engine.child import Child
from engine.decode.event_types import HEADER_LENGTH
from engine.decode.options import DecodeOptions
from engine.errors import BinlogError, EngineError
from engine.net.batching import Batcher
from engine.net.files import MAGIC_LENGTH, open_binlog
from engine.net.origins import FileSource
from engine.net.outlet import Outlet


def follow_files(child: Child, outlet: Outlet, origin: FileSource, decode: DecodeOptions) -> None:
    """Stream the files into `outlet`; damage goes out as the last batch, behind all that is sound."""
    batcher = Batcher(
        lambda table_map: None,
        marker=None,
        gtid_set=origin.gtid_set,
        decode=decode,
        skips=origin.skips,
        pool=outlet.pool,
        foresight=dict.fromkeys,
    )
    error: EngineError | None = None
    followers = [path.name for path in origin.files[1:]]
    try:
        for number, (path, following) in enumerate(zip(origin.files, [*followers, None], strict=True)):
            position = origin.position if number == 0 else MAGIC_LENGTH
            try:
                _read_file(child, outlet, batcher, path, position, is_last=following is None)
            except BinlogError as damage:
                outlet.send(batcher.abandon_file(damage, path.stat().st_size, following))
    except EngineError as failure:
        error = failure
    outlet.send(batcher.finish(error))


def _read_file(
    child: Child, outlet: Outlet, batcher: Batcher, path: Path, position: int, *, is_last: bool
) -> None:
    """Raises `BinlogError` for damage behind which nobody knows where the next event starts."""
    with open_binlog(path) as file:
        outlet.send(batcher.begin_file(path.name))
        size = path.stat().st_size
        if position >= size > MAGIC_LENGTH:
            # All of it was read before, or given up.
            batcher.skip_to(position)
            return
        if position > MAGIC_LENGTH:
            # The rest cannot be read without the format description at the beginning.
            file.readinto(batcher.space()[:HEADER_LENGTH])
            format_size = int.from_bytes(batcher.space()[9:13], "little")
            rest = file.readinto(batcher.space()[HEADER_LENGTH:format_size])
            outlet.send(batcher.received(HEADER_LENGTH + rest))
            batcher.skip_to(position)
            file.seek(position)
        while taken := file.readinto(batcher.space()):
            left = size - file.tell()
            outlet.send(batcher.received(taken, last=left <= 0))
            if batcher.missing > left:
                break
            child.progress(received=file.tell(), total=size, file=path.name, position=batcher.position)
        # The end of the last file may yet come; before another file, it never will.
        if batcher.missing:
            if batcher.contradicts_itself:
                reason = "the event claims to go on behind the end of the file, and to end elsewhere as well"
                raise BinlogError(path.name, batcher.position, reason)
            reason = "the file ends in the middle of an event: it was cut off, or is still being written"
            raise BinlogError(path.name, batcher.position, reason, corrupt=not is_last)
        if batcher.inside_transaction:
            reason = "the file ends inside a transaction, which was left out"
            raise BinlogError(path.name, batcher.position, reason, corrupt=not is_last)
