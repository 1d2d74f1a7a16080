"""What the sink process is started with, in a module that imports little."""

from __future__ import annotations

from dataclasses import dataclass

from engine.slot_file import SlotFile

ROLL_BYTES = 256 << 20
"""A data file that has reached this size is followed by another one."""


@dataclass(frozen=True, slots=True)
class SinkConfig:
    """What the supervisor tells the sink."""

    out: str
    expected_commit: int
    """`OutputState.commit` of the state from which the source is read on; -1 for a new output."""
    results_endpoint: str
    """Bound here: decoders push `Result`s to it."""
    acks_endpoint: str
    """Connected to: the network process pulls `Ack`s from it."""
    reports_endpoint: str
    """Connected to: the supervisor pulls `Report`s from it."""
    server_uuid: str
    """Empty if the source has none."""
    flavor: str
    """`mysql` or `mariadb`."""
    commit_interval: float = 1.0
    """Seconds."""
    commit_bytes: int = 256 << 20
    roll_bytes: int = ROLL_BYTES
    slots: SlotFile | None = None
    """Shared with network process and decoders."""
