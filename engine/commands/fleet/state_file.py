"""The state of a running fleet: a file in `ROOT/_fleet`, which `fleet status` and `fleet reload` read.

A lock beside it shows whether the fleet runs, and its process id. The folder and its files are private to the
user. The lock is released by the operating system's kernel when the process ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.commands.fleet.source_state import SourceState
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.output.file_lock import holder_of, locked_file
from engine.output.files import make_folder
from engine.output.storage import storage_of
from engine.records import Misfit, from_json, json_text

_FOLDER = "_fleet"
_LOCK, _STATE = "lock", "state.json"


@dataclass(frozen=True, slots=True)
class FleetState:
    """A fleet that runs, as of the last change."""

    pid: int
    sources: tuple[SourceState, ...] = ()
    reloads: int = 0
    """How often it was asked to read its file again."""
    reload_error: str | None = None
    """Why the last time changed nothing; None if it was taken."""
    reload_changes: str = ""
    """What the last time changed."""


class StateFile:
    """The file of the fleet with this root."""

    def __init__(self, root: Path) -> None:
        self._folder = root / _FOLDER
        self._written: bytes | None = None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock. Raises `EngineError` if another fleet has it, or the folder cannot be written."""
        with _writing(self._folder):
            make_folder(self._folder)
            descriptor = locked_file(self._folder / _LOCK, 0.0, self._in_use)
        try:
            yield
        finally:
            os.close(descriptor)

    def _in_use(self, holder: str) -> EngineError:
        return EngineError(
            f"a fleet runs in {self._folder.parent} already (process {holder}): have it read its file again "
            "with `binlog-engine fleet reload`, or end it first"
        )

    def running(self) -> int | None:
        """The process id of the fleet that runs; None if none does. Raises `EngineError`."""
        try:
            return holder_of(self._folder / _LOCK)
        except OSError as error:
            raise EngineError(
                f"the folder {self._folder} cannot be read: {error.strerror}; use the fleet's user"
            ) from None

    def write(self, state: FleetState) -> None:
        """Show this state, if it is another one than before. Raises `EngineError`."""
        content = json_text(state)
        if content == self._written:
            return
        with _writing(self._folder):
            storage_of(self._folder).note(_STATE, content)
        self._written = content

    def read(self) -> FleetState | None:
        """The state of the fleet that runs; None if none does, or it has shown none yet."""
        pid = self.running()
        with suppress(OSError, Misfit):
            state = from_json(FleetState, (self._folder / _STATE).read_bytes())
            # Otherwise it is that of a fleet that was killed.
            return state if state.pid == pid else None
        return None


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EngineError(
            f"the folder {folder} cannot be written: {error.strerror}; give the fleet another `root`, or "
            "access to this one"
        ) from None
