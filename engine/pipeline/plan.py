"""The plan of a run: what the supervisor starts its processes with, checked by the command."""

from __future__ import annotations

import os
from dataclasses import field

from engine.config.decode_options import DecodeOptions
from engine.config.output_place import OutputPlace
from engine.dataclass import dataclass
from engine.pipeline.process_settings import FileSource, SchemaOptions, ServerSource, SnapshotOptions


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The checked settings of a run."""

    origin: ServerSource | FileSource
    out: OutputPlace
    expected_commit: int
    """Last commit of the output when `origin` was determined; -1 for a new output."""
    decoders: int
    """Number of decoder processes."""
    decode: DecodeOptions
    commit_interval: float
    """Seconds."""
    commit_bytes: int
    server_uuid: str
    flavor: str
    schema: SchemaOptions = field(default_factory=SchemaOptions)
    snapshot: SnapshotOptions = field(default_factory=SnapshotOptions)


def decoder_count(workers: int) -> int:
    """The number of decoder processes: `workers`, or for 0 one less than there are cores (at least 1)."""
    return workers or max(1, len(os.sched_getaffinity(0)) - 1)
