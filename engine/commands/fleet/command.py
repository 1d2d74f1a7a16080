"""The `fleet` command: follows all sources of a file until it is asked to end.

The main thread takes signals, reads the file again when it is asked to, and shows how the sources are; each
source has a thread of its own.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import FrameType

from engine.commands.fleet.answers import fleet_answer
from engine.commands.fleet.changes import Changes, require_same_fleet
from engine.commands.fleet.display import FleetDisplay
from engine.commands.fleet.fleet import Fleet
from engine.commands.fleet.state_file import FleetState, StateFile
from engine.commands.fleet.watch import FleetWatch
from engine.commands.run_log import RunLog
from engine.config.fleet_file import FleetFile
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.monitoring.gathering import Gatherer
from engine.monitoring.server import served
from engine.pipeline.end_request import SignalledEnd
from engine.pipeline.plan import decoder_count

RELOAD_SIGNAL = signal.SIGUSR1
"""What `fleet reload` sends. SIGHUP asks for the same, except on a terminal, which is gone then."""
_TURN_SECONDS = 0.2


def fleet_command(
    given: FleetFile, read_again: Callable[[], FleetFile], log: RunLog | None = None, *, on_terminal: bool
) -> int:
    """Follow the sources of the file `given`; returns the exit code. Raises `EngineError`.

    `read_again` reads the file anew for a reload.
    """
    sources = given.with_logins(os.environ)
    display = FleetDisplay(log=log)
    end = SignalledEnd()
    http = given.settings.monitoring.http
    gatherer, watch = None if http is None else Gatherer(), FleetWatch()
    with StateFile(given.settings.root).locked(), end.noted(), _reload_signals(on_terminal) as reload:
        fleet = Fleet(display, decoder_count(given.settings.decoders), gatherer)
        shown = _Shown(given, fleet, display, watch)
        try:
            with _monitored(http, gatherer, watch, display):
                fleet.take(sources)
                while not (end.is_asked() or fleet.has_ended):
                    if reload.is_asked:
                        reload.is_asked = False
                        shown.reload(read_again)
                    shown.update()
                    time.sleep(_TURN_SECONDS)
        finally:
            late = fleet.end()
    if late:
        raise EngineError(
            f"these sources did not end in time, and were killed: {', '.join(late)}; they continue from "
            "their last commit when the fleet is started again"
        )
    return 0


@contextmanager
def _monitored(
    http: str | None, gatherer: Gatherer | None, watch: FleetWatch, display: FleetDisplay
) -> Iterator[None]:
    """Gather figures and serve what is watched, if there is an address. Raises `EngineError`."""
    if http is None or gatherer is None:
        yield
        return
    with served(http, partial(fleet_answer, watch), display, "metrics and status pages"), gatherer:
        yield


@dataclass(slots=True)
class _Reload:
    is_asked: bool = False

    def note(self, number: int, frame: FrameType | None) -> None:
        self.is_asked = True


@contextmanager
def _reload_signals(on_terminal: bool) -> Iterator[_Reload]:
    """A context in which the signals that ask for a reload are noted."""
    reload = _Reload()
    numbers = (RELOAD_SIGNAL,) if on_terminal else (RELOAD_SIGNAL, signal.SIGHUP)
    previous = {number: signal.signal(number, reload.note) for number in numbers}
    try:
        yield reload
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class _Shown:
    """What is shown of a fleet: in its state file, over HTTP and on standard error; and its reloads."""

    def __init__(self, given: FleetFile, fleet: Fleet, display: FleetDisplay, watch: FleetWatch) -> None:
        self._watch = watch
        self._given = given
        self._fleet = fleet
        self._display = display
        self._file = StateFile(given.settings.root)
        self._state = FleetState(os.getpid())
        self._problem: str | None = None

    def reload(self, read_again: Callable[[], FleetFile]) -> None:
        """Take a new version of the file, or say why it cannot be taken."""
        error, changes = None, Changes()
        try:
            new = read_again()
            require_same_fleet(self._given.settings, new.settings)
            changes = self._fleet.take(new.with_logins(os.environ))
            self._display.inform("reloaded", f"the file was read again: {changes.sentence()}")
        except (EngineError, OSError) as refusal:
            error = str(refusal)
            self._display.warn("reload_refused", f"{error}; the fleet stays as it was")
        self._state = replace(
            self._state,
            reloads=self._state.reloads + 1,
            reload_error=error,
            reload_changes=changes.sentence(),
        )

    def update(self) -> None:
        """Show how the sources are now."""
        self._state = replace(self._state, sources=self._fleet.states())
        self._write()
        self._watch.show(self._state.sources, self._fleet.monitors())
        self._display.show(self._state.sources)

    def _write(self) -> None:
        """Sources are followed without the file, too: it is tried again with the next change."""
        problem = None
        try:
            self._file.write(self._state)
        except EngineError as error:
            problem = str(error)
            if self._problem is None:
                self._display.warn("state_not_shown", problem)
        self._problem = problem
