"""Whether an output has requests for snapshots, asked often by a loop that must not wait.

In a folder that is one look. An object store may take long to answer, and a listing has a price: a thread
asks it at intervals.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

from engine.errors import EngineError
from engine.output.snapshot_requests import has_requests
from engine.output.storage import OutputPlace

STORE_SECONDS = 10.0
"""Between two questions to an object store."""
FOLDER_SECONDS = 0.5
"""Between two looks into a folder."""


def request_interval(out: OutputPlace) -> float:
    """The seconds between two looks for requests."""
    return FOLDER_SECONDS if isinstance(out, Path) else STORE_SECONDS


class RequestWatch:
    """Looks for requests in `out` until it is closed."""

    def __init__(self, out: OutputPlace) -> None:
        self._out = out
        self._found = False
        self._end = threading.Event()
        if not isinstance(out, Path):
            threading.Thread(target=self._ask_often, name="requests", daemon=True).start()

    def finds(self) -> bool:
        """Whether there are requests, or were when they were looked for last."""
        return has_requests(self._out) if isinstance(self._out, Path) else self._found

    def close(self) -> None:
        """End the thread with its next look."""
        self._end.set()

    def _ask_often(self) -> None:
        while not self._end.is_set():
            with suppress(EngineError):
                self._found = has_requests(self._out)
            self._end.wait(STORE_SECONDS)
