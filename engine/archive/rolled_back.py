"""XA transactions of an archive that were rolled back after XA PREPARE: their rows are left out.

The first pass notes where transactions are prepared, and how they end, which may be many files later. Each
part is told the positions between which rows of its file are left out. Their numbers are not given again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from engine.dataclass import dataclass
from engine.decode.rows.prepared import XaEvents
from engine.output.run_ends import chosen_rows, run_end_decoded
from engine.pipeline.messages import Batch

Span = tuple[int, int]
"""Positions in a file, both included, of a transaction's first event and of its last one."""


@dataclass(frozen=True, slots=True)
class XaStep:
    """A transaction is prepared, or ends."""

    xid: str
    span: Span | None
    """Where it is, if it is prepared; None if it ends."""
    rolled_back: bool = False


class XaSteps:
    """The steps of a part of a file, batch by batch."""

    def __init__(self) -> None:
        self.steps: list[XaStep] = []
        self._begin: int | None = None
        """Where the open transaction began, if there is one."""

    def take(self, batch: Batch, found: XaEvents) -> None:
        """The next batch, with what was found in it."""
        if self._begin is None or batch.status.aborts_transaction:
            self._begin = batch.position
        self.steps += [XaStep(xid, None) for xid in found.committed]
        for each in found.prepared:
            begin = self._begin if each.begin is None else each.begin
            self.steps.append(XaStep(each.xid, (begin, each.end)))
        for change in batch.status.schema_changes:
            if change.rolled_back is not None:
                self.steps.append(XaStep(change.rolled_back, None, rolled_back=True))
        if batch.status.ends_transaction:
            self._begin = None


class RolledBack:
    """The transactions that are rolled back in the files so far."""

    def __init__(self) -> None:
        self._prepared: dict[str, tuple[str, Span]] = {}
        self._spans: dict[str, list[Span]] = {}

    def follow(self, file: str, steps: Iterable[XaStep]) -> None:
        """The steps of the next file."""
        for step in steps:
            known = self._prepared.pop(step.xid, None)
            if step.span is not None:
                self._prepared[step.xid] = file, step.span
            elif step.rolled_back and known is not None:
                self._spans.setdefault(known[0], []).append(known[1])

    def spans(self, file: str) -> tuple[Span, ...]:
        """Where they are in a file."""
        return tuple(self._spans.get(file, ()))


def without_rolled_back(rows: pa.RecordBatch, spans: Sequence[Span]) -> pa.RecordBatch:
    """The rows of a part, as data files have them, outside of `spans`; `rows` itself if all are."""
    if not spans:
        return rows
    positions = run_end_decoded(rows.column("_pos")).to_numpy()
    chosen = np.ones(len(positions), np.bool_)
    for first, last in spans:
        chosen &= (positions < first) | (positions > last)
    return chosen_rows(rows, chosen)
