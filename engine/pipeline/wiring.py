"""How the processes of a run find each other: what each is started with, made from the plan of the run.

Sockets are files in one folder of the run, and the slots of shared memory are divided: the first ones are for
the stream, the others for the snapshot process.
"""

from __future__ import annotations

from pathlib import Path

from engine.dataclass import dataclass
from engine.pipeline.plan import RunPlan
from engine.pipeline.process_settings import (
    DecoderConfig,
    NetworkConfig,
    ServerSource,
    SinkConfig,
    SnapshotConfig,
)
from engine.pipeline.slot_file import SlotFile

_SLOTS = 4
_SLOTS_PER_DECODER = 2
"""Slots of shared memory: per decoder one that is decoded and one that waits; the others are received into,
written, or wait for either.

With more slots, a process that is ahead fills them all, and they are not in the processor's cache when used.
"""


@dataclass(frozen=True, slots=True)
class Wiring:
    """What the processes of one run are started with."""

    sink: SinkConfig
    decoders: tuple[DecoderConfig, ...]
    network: NetworkConfig
    snapshot: SnapshotConfig | None
    """Only where the source is a server."""


def reports_endpoint(folder: Path) -> str:
    """The socket that the supervisor takes reports from; `folder`: that of the run's sockets."""
    return _endpoint(folder, "reports")


def slot_count(plan: RunPlan) -> int:
    """How many slots the run needs."""
    if not isinstance(plan.origin, ServerSource):
        return _stream_slots(plan)
    return _stream_slots(plan) + plan.snapshot.connections + plan.decoders + 1


def wiring_of(plan: RunPlan, folder: Path, slots: SlotFile) -> Wiring:
    """What the processes are started with; `slots` are as many as `slot_count` says."""
    batches, results, acks, rows, orders, answers = (
        _endpoint(folder, name) for name in ("batches", "results", "acks", "rows", "orders", "answers")
    )
    reports = reports_endpoint(folder)
    for_stream = _stream_slots(plan)
    sink = SinkConfig(
        out=str(plan.out),
        expected_commit=plan.expected_commit,
        results_endpoint=results,
        acks_endpoint=acks,
        reports_endpoint=reports,
        orders_endpoint=orders,
        answers_endpoint=answers,
        snapshot_when_changed=plan.snapshot.when_changed,
        commit_interval=plan.commit_interval,
        commit_bytes=plan.commit_bytes,
        server_uuid=plan.server_uuid,
        flavor=plan.flavor,
        shard=str(plan.decode.tables.shard or ""),
        slots=slots,
    )
    decoders = tuple(
        DecoderConfig(
            name=f"decoder-{number}",
            batches_endpoints=(batches, rows),
            results_endpoint=results,
            reports_endpoint=reports,
            options=plan.decode,
            slots=slots,
            ready_slots=for_stream,
        )
        for number in range(plan.decoders)
    )
    network = NetworkConfig(
        origin=plan.origin,
        batches_endpoint=batches,
        acks_endpoint=acks,
        reports_endpoint=reports,
        decode=plan.decode,
        flavor=plan.flavor,
        schema=plan.schema,
        decoders=plan.decoders,
        slots=slots,
        slot_count=for_stream,
    )
    snapshot = None
    if isinstance(plan.origin, ServerSource):
        snapshot = SnapshotConfig(
            address=plan.origin.address,
            out=str(plan.out),
            tables=plan.decode.tables,
            batches_endpoint=rows,
            orders_endpoint=orders,
            answers_endpoint=answers,
            reports_endpoint=reports,
            options=plan.snapshot,
            commit_interval=plan.commit_interval,
            slots=slots,
            first_slot=for_stream,
        )
    return Wiring(sink, decoders, network, snapshot)


def _stream_slots(plan: RunPlan) -> int:
    return _SLOTS + _SLOTS_PER_DECODER * plan.decoders


def _endpoint(folder: Path, name: str) -> str:
    return f"ipc://{folder}/{name}"
