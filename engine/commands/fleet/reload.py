"""The `fleet reload` command: has a running fleet read its file again, and says what that changed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from engine.commands.fleet.command import RELOAD_SIGNAL
from engine.commands.fleet.state_file import StateFile
from engine.config.fleet_file import FleetFile
from engine.errors import EngineError

_PATIENCE_SECONDS = 30.0
_LOOK_SECONDS = 0.05


def reload_command(given: FleetFile) -> int:
    """Have the fleet of this file read it again; returns the exit code.

    Raises `EngineError` if no fleet runs, if it does not answer, and if it cannot take the file.
    """
    file = StateFile(given.settings.root)
    before = file.read()
    if before is None:
        raise _not_running(given.path, given.settings.root)
    try:
        os.kill(before.pid, RELOAD_SIGNAL)
    except ProcessLookupError:
        raise _not_running(given.path, given.settings.root) from None
    except PermissionError:
        raise EngineError(
            f"process {before.pid} belongs to another user: use the one that started the fleet"
        ) from None
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        state = file.read()
        if state is not None and state.reloads > before.reloads:
            if state.reload_error is not None:
                raise EngineError(f"{state.reload_error}; the fleet stays as it was")
            print(state.reload_changes)
            return 0
        time.sleep(_LOOK_SECONDS)
    raise EngineError(f"the fleet (process {before.pid}) did not answer in {_PATIENCE_SECONDS:.0f} s")


def _not_running(path: Path, root: Path) -> EngineError:
    return EngineError(f"no fleet runs in {root}: start it with `binlog-engine fleet {path}`")
