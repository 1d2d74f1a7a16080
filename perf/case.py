"""A case: what is measured, on what, against whom; and what came out of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Generic, TypeVar

from perf.binlog import Binlog
from perf.measurement import Measurement, Usage
from perf.peer import Peer

Subject = TypeVar("Subject")


@dataclass(frozen=True)
class Settings:
    """What the user of the harness chose."""

    scale: float
    """Of the workloads; 1 is full size."""
    workers: int
    """Decoder processes of the engine; 0 leaves it to the engine."""
    work: Path
    """Folder for what peers write; exists."""


def no_binlog() -> None:
    """For cases that make their changes while they are measured."""


@dataclass(frozen=True)
class Case(Generic[Subject]):
    """One table of the report. The first of the peers is the engine, which the others are compared with."""

    name: str
    title: str
    group: str
    """What it measures, for a heading; cases of a group have the same peers."""
    binlog: Callable[[], Binlog | None]
    offer: Callable[[Any], AbstractContextManager[Subject]]
    """Makes of the binlog what the peers are measured on."""
    peers: Sequence[Peer[Subject]]
    measures: str = "seconds"
    """What `Measurement.seconds` are seconds of, as a heading."""
    compares: bool = True
    """Whether the peers are to be compared with the first one; else they are the engine under conditions."""

    def only_with(self, wanted: Sequence[str]) -> Case[Subject]:
        """The case with the engine, and of its peers those with one of `wanted` in their names."""
        chosen = [peer for peer in self.peers[1:] if any(part in peer.name for part in wanted)]
        return replace(self, peers=(self.peers[0], *chosen))


@dataclass
class PeerResult:
    """All runs of one peer, or the reason why there are none."""

    name: str
    remark: str
    runs: list[Measurement] = field(default_factory=list)
    skipped: str | None = None

    @property
    def seconds(self) -> float:
        """The median; only for a peer that has runs."""
        return median(run.seconds for run in self.runs)

    @property
    def start_up_seconds(self) -> float | None:
        """The median, null where it was not measured."""
        known = [run.start_up_seconds for run in self.runs if run.start_up_seconds is not None]
        return median(known) if known else None

    def value(self, name: str) -> float | None:
        """The median of one of `Measurement.values`, null where it was not measured."""
        known = [run.values[name] for run in self.runs if name in run.values]
        return median(known) if known else None

    def process_medians(self) -> Mapping[str, Usage]:
        """By process the medians of what it used."""
        names = dict.fromkeys(name for run in self.runs for name in run.processes)
        return {
            name: _median_usage([run.processes[name] for run in self.runs if name in run.processes])
            for name in names
        }


@dataclass(frozen=True)
class CaseResult:
    """What a case came to."""

    name: str
    title: str
    group: str
    rows: int
    """Rows changed; an update counts once. 0 where that is not what was measured."""
    bytes: int
    """Of the binlog."""
    peers: Sequence[PeerResult]
    measures: str = "seconds"
    compares: bool = True

    @property
    def engine(self) -> PeerResult:
        """The first peer, which the others are compared with."""
        return self.peers[0]

    def peer(self, name: str) -> PeerResult | None:
        """The peer of that name that has runs."""
        return next((peer for peer in self.peers if peer.name == name and peer.runs), None)

    def ratio(self, peer: PeerResult) -> float | None:
        """The engine's rate as a multiple of the peer's; null where one of them has no runs."""
        return peer.seconds / self.engine.seconds if peer.runs and self.engine.runs else None


def _median_usage(usages: Sequence[Usage]) -> Usage:
    proportional = [usage.proportional_memory for usage in usages if usage.proportional_memory is not None]
    return Usage(
        median(usage.user_seconds for usage in usages),
        median(usage.system_seconds for usage in usages),
        int(median(usage.peak_memory for usage in usages)),
        int(median(proportional)) if proportional else None,
    )
