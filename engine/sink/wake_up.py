"""A pipe that ends a poll, from a signal handler or from another thread."""

from __future__ import annotations

import os
from contextlib import suppress


class WakeUp:
    """A context with the pipe; the loop polls `descriptor`."""

    def __init__(self) -> None:
        self.descriptor, self._writing_end = os.pipe()
        os.set_blocking(self.descriptor, False)
        self.is_stopped = False
        """Whether the loop was asked to leave."""

    def __enter__(self) -> WakeUp:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)
        os.close(self._writing_end)

    def nudge(self) -> None:
        """End the current poll, or the next one."""
        os.write(self._writing_end, b"\0")

    def stop(self) -> None:
        """Ask the loop to leave."""
        self.is_stopped = True
        self.nudge()

    def drain(self) -> bool:
        """Empty the pipe for the next poll; true if the loop is to leave."""
        with suppress(BlockingIOError):
            while os.read(self.descriptor, 4096):
                pass
        return self.is_stopped
