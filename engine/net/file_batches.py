"""The batches of one opened binlog file, and the error if it ends inside an event or a transaction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import Any

from engine.errors import BinlogError
from engine.net.batching.batcher import Batcher
from engine.net.batching.outgoing_batch import OutgoingBatch


def file_batches(
    batcher: Batcher,
    file: BufferedReader[Any],
    name: str,
    size: int | None,
    *,
    is_last: bool,
    progress: Callable[[], None] = lambda: None,
) -> Iterator[OutgoingBatch]:
    """The batches of the rest of the file `name`.

    `size`: its bytes; None if only its end shows how many. `is_last`: the server may still be writing the
    file. `progress` is called after each piece that was read. Raises `BinlogError` for damage after which the
    start of the next event is unknown.
    """
    while taken := file.readinto(batcher.space()):
        if size is not None:
            left: float = size - file.tell()
        else:
            left = math.inf if file.peek(1) else 0
        yield from batcher.received(taken, last=left <= 0)
        if batcher.missing > left:
            break
        progress()
    # The server may still be writing the last file, but no file that another one follows.
    if batcher.missing:
        if batcher.contradicts_itself:
            reason = "the event's size reaches beyond the end of the file and does not fit its position"
            raise BinlogError(name, batcher.position, reason)
        reason = "the file ends in the middle of an event: it was cut off, or is still being written"
        raise BinlogError(name, batcher.position, reason, corrupt=not is_last)
    if batcher.inside_transaction:
        reason = "the file ends inside a transaction, which was dropped"
        raise BinlogError(name, batcher.position, reason, corrupt=not is_last)
