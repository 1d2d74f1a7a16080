"""Follows one source of a fleet in a thread, and tries it again when it fails, with growing pauses.

Whatever happens to a source stays in its thread: a wrong password, a server that is away, an error of the
engine. The thread does what `run` does, with a network process and a sink of its own.
"""

from __future__ import annotations

import math
import threading
import traceback
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from engine.commands.fleet.source_state import SourceState, StateKeeper
from engine.commands.narrator import Narrator
from engine.commands.retries import Retries
from engine.commands.run import follow_maintained, has_worked
from engine.config.fleet_file import FleetSource
from engine.errors import EngineError, os_error_sentence
from engine.monitoring.gathering import Gatherer
from engine.monitoring.monitor import Monitor
from engine.pipeline.decoder_pool import DecoderPool
from engine.pipeline.end_request import RequestedEnd
from engine.pipeline.observer import Happening, Observer, Observers
from engine.pipeline.stop_signals import signals_blocked

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
"""Seconds. The longest is that long because a wrong password, tried often, may lock the account."""


class Follower:
    """A source that is followed; `start` and the others are called by the fleet's main thread."""

    def __init__(
        self,
        source: FleetSource,
        listener: Observer,
        decoder_pool: DecoderPool,
        before: Follower | None = None,
        *,
        gatherer: Gatherer | None = None,
    ) -> None:
        """`listener` learns what happens; `before`: another one with the same output, which is ending.

        `gatherer`: gathers all that `run --http` shows; None if nothing does.
        """
        self.source = source
        self._decoder_pool = decoder_pool
        self._before = before
        self._keeper = StateKeeper(source.name, str(source.settings.pipeline.out))
        named = _Named(source.name, listener)
        self._gatherer = gatherer
        self.monitor = None if gatherer is None else Monitor(source.settings.pipeline.out, source.name, named)
        """What is known of the source beside its state."""
        self._listener = Observers(self._keeper, *filter(None, [self.monitor]), named)
        self._end = RequestedEnd()
        self._woken = threading.Event()
        self._retries = Retries(math.inf, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
        self._thread = threading.Thread(target=self._follow, name=source.name, daemon=True)

    @property
    def state(self) -> SourceState:
        """How the source is now."""
        return self._keeper.state

    @property
    def has_ended(self) -> bool:
        """Whether its thread has, with all processes of the source."""
        return not self._thread.is_alive()

    def start(self) -> None:
        """Begin to follow."""
        # Signals are left to the main thread.
        with signals_blocked():
            self._thread.start()

    def retry_now(self) -> None:
        """Try again without the rest of the present pause."""
        self._woken.set()

    def end(self) -> None:
        """Ask for an orderly end, and do not wait for it."""
        self._end.ask()
        self._woken.set()

    def join(self, seconds: float | None = None) -> None:
        """Wait for the end."""
        self._thread.join(seconds)

    def _follow(self) -> None:
        if self._before is not None:
            self._before.join()
            self._before = None
        with self._gathering():
            self._follow_until_asked()
        self._keeper.ended()

    def _gathering(self) -> AbstractContextManager[None]:
        if self._gatherer is None or self.monitor is None:
            return nullcontext()
        return self._gatherer.gathering(self.monitor)

    def _follow_until_asked(self) -> None:
        while not self._end.is_asked():
            error, values = self._attempt()
            if error is None:
                break
            self._woken.clear()
            pause = self._retries.next_pause()
            assert pause is not None
            sentence = f"{error}; trying again in {pause:.1f} s"
            self._listener.warn("source_failed", sentence, pause_seconds=pause, **values)
            if not self._end.is_asked():
                self._woken.wait(pause)

    def _attempt(self) -> tuple[str | None, Mapping[str, object]]:
        """The error with which following the source ended, and values for the log."""
        settings, login = self.source.settings, self.source.login
        observer = Observers(self._listener, Narrator(self._listener))
        try:
            outcome = follow_maintained(settings, login, observer, self._end, self._decoder_pool)
        except EngineError as error:
            return str(error), {}
        except OSError as error:
            return os_error_sentence(error), {}
        except Exception as error:
            bug = f"the engine met a bug: {error!r}; please report it"
            return bug, {"traceback": traceback.format_exc()}
        if has_worked(outcome):
            self._retries.succeeded()
        return outcome.error, {} if outcome.traceback is None else {"traceback": outcome.traceback}


class _Named(Observer):
    """Puts the name of a source before what happens to it."""

    def __init__(self, name: str, listener: Observer) -> None:
        self._name = name
        self._listener = listener

    def happened(self, happening: Happening) -> None:
        message = f"{self._name}: {happening.message}"
        values = {"source_name": self._name, **happening.values}
        self._listener.happened(Happening(happening.level, happening.name, message, values))
