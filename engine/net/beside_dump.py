"""What the network process does between two pieces of a dump that reads ahead in the server's binlog.

It waits for further pieces, reports to the supervisor, and ends when it is asked to.
"""

from __future__ import annotations

import time

from engine.errors import ConnectionFailed
from engine.net.client.compressed_stream import Stream
from engine.net.stream_wait import StreamWait
from engine.pipeline.child import Child, Stopped

_POLL_SECONDS = 1.0
_SHORT_WAIT_SECONDS = 0.001
"""After some bytes, the server is expected to send many more at once."""
_LONGEST_SILENCE_SECONDS = 60.0
"""The server never has to wait for new events, since the dump ends where the binlog ends."""


class BesideDump:
    """A `client.statements_ahead.Meanwhile`, for one dump after the other."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._stream: Stream | None = None
        self._wait: StreamWait
        self._had_bytes = False

    def __call__(self, stream: Stream, empty: bool) -> None:
        """Raises `Stopped` when the process is to end, `ConnectionFailed` when the server is silent."""
        if stream is not self._stream:
            self._stream, self._wait = stream, StreamWait(stream, self._child.leave_descriptors)
        if empty and self._had_bytes:
            self._wait.for_many(_SHORT_WAIT_SECONDS)
        elif empty:
            self._wait_long()
        self._had_bytes = not empty
        if self._child.leaving:
            raise Stopped
        self._child.repeat_progress()

    def _wait_long(self) -> None:
        end = time.monotonic() + _LONGEST_SILENCE_SECONDS
        while not self._wait.for_any(_POLL_SECONDS):
            self._child.repeat_progress()
            if time.monotonic() >= end:
                raise ConnectionFailed(
                    f"the server sent nothing for {_LONGEST_SILENCE_SECONDS:g} s while we read ahead in its "
                    "binlog: check the server and the network"
                )
