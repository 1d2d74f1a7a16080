"""The sources that a fleet follows, and what a new version of its file does to them."""

from __future__ import annotations

import time
from collections.abc import Mapping

from engine.commands.fleet.changes import Changes, source_changes
from engine.commands.fleet.follower import Follower
from engine.commands.fleet.source_state import SourceState
from engine.config.fleet_file import FleetSource
from engine.monitoring.gathering import Gatherer
from engine.monitoring.monitor import Monitor
from engine.pipeline.decoder_pool import DecoderPool
from engine.pipeline.observer import Observer

END_SECONDS = 40.0
"""How long to wait for the sources: a run that is stopped has 20 s, and a server may be slow to refuse."""


class Fleet:
    """The followers by the names of their sources. For the main thread."""

    def __init__(self, listener: Observer, decoders: int, gatherer: Gatherer | None = None) -> None:
        """`decoders`: the number of decoder processes that the sources share.

        `gatherer`: each source has a monitor, which gathers there; without one none has.
        """
        self._gatherer = gatherer
        self._listener = listener
        self._decoder_pool = DecoderPool(decoders)
        self._followers: dict[str, Follower] = {}
        self._removed: list[Follower] = []

    def take(self, sources: Mapping[str, FleetSource]) -> Changes:
        """Follow these sources from now on; those that are followed already, with the same settings, go on.

        A source that waits for its next attempt is tried now.
        """
        present = {name: follower.source for name, follower in self._followers.items()}
        changes = source_changes(present, sources)
        for follower in self._followers.values():
            follower.retry_now()
        self._removed = [follower for follower in self._removed if not follower.has_ended]
        for name in changes.removed:
            follower = self._followers.pop(name)
            follower.end()
            self._removed.append(follower)
        for name in (*changes.added, *changes.changed):
            before = self._followers.get(name)
            if before is not None:
                before.end()
            self._followers[name] = Follower(
                sources[name], self._listener, self._decoder_pool, before, gatherer=self._gatherer
            )
            self._followers[name].start()
        return changes

    @property
    def has_ended(self) -> bool:
        """Whether no source is followed any more: all have drained their servers."""
        return all(follower.has_ended for follower in self._followers.values())

    def states(self) -> tuple[SourceState, ...]:
        """How the sources are now, by name."""
        return tuple(follower.state for _, follower in sorted(self._followers.items()))

    def monitors(self) -> dict[str, Monitor]:
        """The monitors by the names of their sources; empty if there are none."""
        followers = sorted(self._followers.items())
        return {name: follower.monitor for name, follower in followers if follower.monitor is not None}

    def end(self) -> list[str]:
        """End all sources in an orderly way; returns the names of those that have not ended in time."""
        followers = [*self._followers.values(), *self._removed]
        for follower in followers:
            follower.end()
        deadline = time.monotonic() + END_SECONDS
        for follower in followers:
            follower.join(max(0.0, deadline - time.monotonic()))
        self._decoder_pool.close()
        return [follower.source.name for follower in followers if not follower.has_ended]
