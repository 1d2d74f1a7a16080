"""What every peer is: a program, and how one run of it is measured.

`Subject` is what it is measured on: a binlog that a server offers, or a binlog file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from perf.measurement import Measurement

Subject = TypeVar("Subject", contravariant=True)


class Peer(ABC, Generic[Subject]):
    """One contender of a case."""

    name: str
    remark: str = ""
    """What a reader of the table must know about how it was measured."""
    most_runs: int | None = None
    """However often a case is repeated; for what takes long."""

    def prepare(self) -> None:
        """Get ready, once, before anything is measured (build a program, say).

        Raises PeerError with the reason where this machine cannot have it.
        """

    def warm_up(self, subject: Subject) -> None:
        """Do, before the first measurement, what only a first run ever pays for. Raises PeerError."""

    def clean_up(self) -> None:
        """Remove what the runs have left, once nothing more is measured."""

    @abstractmethod
    def measure(self, subject: Subject) -> Measurement:
        """Run it once, from start to end. Raises PeerError."""
