"""The base class of peers: a program, and how one run of it is measured.

`Subject` is what it is measured on, such as a binlog on a server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from perf.measurement import Measurement

Subject = TypeVar("Subject", contravariant=True)


class Peer(ABC, Generic[Subject]):
    """One program that a case measures."""

    name: str
    remark: str = ""
    """What a reader of the table must know about the measurement."""
    most_runs: int | None = None
    """The most runs, for peers that take long; None means as many as the case is repeated."""

    def prepare(self) -> None:
        """Prepare once, before anything is measured (for example, build a program).

        Raises PeerError with the reason if the peer cannot run on this machine.
        """

    def warm_up(self, subject: Subject) -> None:
        """Do the work that only a first run needs, before the first measurement. Raises PeerError."""

    def clean_up(self) -> None:
        """Remove the files of the runs, after the last measurement."""

    @abstractmethod
    def measure(self, subject: Subject) -> Measurement:
        """Run the program once, from start to end. Raises PeerError."""
