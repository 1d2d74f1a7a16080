"""A case: what is measured, on which binlog or rows, for which peers; and its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Generic, Protocol, TypeVar

from perf.measurement import Measurement, Usage
from perf.peer import Peer

Subject = TypeVar("Subject")


@dataclass(frozen=True)
class Settings:
    """The harness's options."""

    scale: float
    """Of the workloads; 1 is full size."""
    workers: int
    """Decoder processes of the engine; 0 means the engine's default."""
    work: Path
    """An existing folder for the files of peers."""


class Material(Protocol):
    """What the subject is made of: a binlog, or rows that a server has."""

    @property
    def rows(self) -> int:
        """Rows that peers read."""

    @property
    def size(self) -> int:
        """In bytes."""


def no_material() -> None:
    """For cases that write their changes while they are measured."""


@dataclass(frozen=True)
class Case(Generic[Subject]):
    """One table of the report. The first peer is the engine, with which the others are compared."""

    name: str
    title: str
    group: str
    """What the case measures, for a heading; cases of a group have the same peers."""
    material: Callable[[], Material | None]
    offer: Callable[[Any], AbstractContextManager[Subject]]
    """Returns the subject on which peers are measured, given the material."""
    peers: Sequence[Peer[Subject]]
    measures: str = "seconds"
    """The heading of `Measurement.seconds`."""
    compares: bool = True
    """Whether peers are compared with the first one; else all are the engine under different conditions."""

    def only_with(self, wanted: Sequence[str]) -> Case[Subject]:
        """The case with the engine and those of its peers whose names contain one of `wanted`."""
        chosen = [peer for peer in self.peers[1:] if any(part in peer.name for part in wanted)]
        return replace(self, peers=(self.peers[0], *chosen))


@dataclass
class PeerResult:
    """All runs of one peer, or the reason why it has none."""

    name: str
    remark: str
    runs: list[Measurement] = field(default_factory=list)
    skipped: str | None = None

    @property
    def seconds(self) -> float:
        """The median of its runs; the peer must have some."""
        return median(run.seconds for run in self.runs)

    @property
    def start_up_seconds(self) -> float | None:
        """The median; None if it was not measured."""
        known = [run.start_up_seconds for run in self.runs if run.start_up_seconds is not None]
        return median(known) if known else None

    def value(self, name: str) -> float | None:
        """The median of one of `Measurement.values`; None if it was not measured."""
        known = [run.values[name] for run in self.runs if name in run.values]
        return median(known) if known else None

    def process_medians(self) -> Mapping[str, Usage]:
        """By process: the medians of its resource usage."""
        names = dict.fromkeys(name for run in self.runs for name in run.processes)
        return {
            name: _median_usage([run.processes[name] for run in self.runs if name in run.processes])
            for name in names
        }


@dataclass(frozen=True)
class CaseResult:
    """The results of a case."""

    name: str
    title: str
    group: str
    rows: int
    """Rows of the material; an update in a binlog counts once. 0 if the case does not measure rows."""
    bytes: int
    """Of the material."""
    peers: Sequence[PeerResult]
    measures: str = "seconds"
    compares: bool = True

    @property
    def engine(self) -> PeerResult:
        """The first peer, with which the others are compared."""
        return self.peers[0]

    def peer(self, name: str) -> PeerResult | None:
        """The peer of that name; None if it has no runs."""
        return next((peer for peer in self.peers if peer.name == name and peer.runs), None)

    def ratio(self, peer: PeerResult) -> float | None:
        """The engine's rate as a multiple of the peer's; None if one of them has no runs."""
        return peer.seconds / self.engine.seconds if peer.runs and self.engine.runs else None


def _median_usage(usages: Sequence[Usage]) -> Usage:
    proportional = [usage.proportional_memory for usage in usages if usage.proportional_memory is not None]
    return Usage(
        median(usage.user_seconds for usage in usages),
        median(usage.system_seconds for usage in usages),
        int(median(usage.peak_memory for usage in usages)),
        int(median(proportional)) if proportional else None,
    )
