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
        lambda table_map: None, marker=None, gtid_set=origin.gtid_set, decode=decode, pool=outlet.pool
    )
    error = None
    try:
        for number, path in enumerate(origin.files):
            _read_file(child, outlet, batcher, path, origin.position if number == 0 else MAGIC_LENGTH)
    except EngineError as failure:
        error = str(failure)
    outlet.send(batcher.finish(error))


def _read_file(child: Child, outlet: Outlet, batcher: Batcher, path: Path, position: int) -> None:
    with open_binlog(path) as file:
        outlet.send(batcher.begin_file(path.name))
        size = path.stat().st_size
        if position > MAGIC_LENGTH:
            # The rest cannot be read without the format description at the beginning.
            file.readinto(batcher.space()[:HEADER_LENGTH])
            format_size = int.from_bytes(batcher.space()[9:13], "little")
            rest = file.readinto(batcher.space()[HEADER_LENGTH:format_size])
            outlet.send(batcher.received(HEADER_LENGTH + rest))
            batcher.skip_to(position)
            file.seek(position)
        while taken := file.readinto(batcher.space()):
            outlet.send(batcher.received(taken))
            left = size - file.tell()
            if batcher.missing > left:
                break
            child.progress(received=file.tell(), total=size, file=path.name, position=batcher.position)
        if batcher.missing:
            reason = "the file ends in the middle of an event: it was cut off, or is still being written"
            raise BinlogError(path.name, batcher.position, reason)
        if batcher.inside_transaction:
            reason = "the file ends inside a transaction, which was left out"
            raise BinlogError(path.name, batcher.position, reason)
