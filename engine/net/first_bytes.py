"""Receives the first bytes of a dump together, so that one question to the server describes their tables.

A server sends its binlog in pieces of 16 KB. Handled as they come, the first ones name few tables each: many
questions instead of one, and a batch with few rows of many tables, each of which is work for the decoder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from engine.errors import EngineError

_LONGEST_SECONDS = 0.01
"""How long the first bytes may wait for others; the server sends a whole buffer in less."""

Receive = Callable[[Callable[[], memoryview]], Iterator[int | None]]
"""`engine.net.client.dump_stream.DumpStream.receive`."""


def receive_first_together(
    receive: Receive, space: Callable[[], memoryview], has_more: Callable[[], bool]
) -> Iterator[int | None]:
    """As `receive(space)`, but the first size is that of all bytes that come at once, up to a full `space`.

    `has_more` waits a moment for bytes, and says whether some have come.
    """
    held = 0
    until = 0.0
    sizes = receive(lambda: space()[held:])
    try:
        for size in sizes:
            if not held:
                if size is None:
                    yield None
                    continue
                until = time.monotonic() + _LONGEST_SECONDS
            held += size or 0
            ended = size is None and not has_more()
            if ended or held == len(space()) or time.monotonic() > until:
                break
    except EngineError:
        # The server may have said why before the connection was lost.
        if held:
            yield held
        raise
    yield held
    held = 0
    yield from sizes
