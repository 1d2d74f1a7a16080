"""The outcome of a run: a summary for people, and in full as a JSON file (`--report`)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from engine.errors import EngineError
from engine.pipeline.outcome import Outcome


def summary(outcome: Outcome, *, verbose: bool) -> str:
    """The outcome in a line; with `verbose`, a line per process with its memory and processor time."""
    totals = outcome.totals
    position = totals.get("position") or {}
    where = f", up to {position['file']}:{position['position']}" if position else ""
    lines = [
        # Not "of" transactions: snapshots read rows, too.
        f"{totals.get('rows', 0):,} rows and {totals.get('transactions', 0):,} transactions in "
        f"{totals.get('commits', 0):,} commits, {outcome.seconds:.2f} s{where}"
    ]
    if skipped := totals.get("skipped_corrupt_events"):
        lines.append(f"{skipped:,} corrupt events skipped, recorded in the events feed")
    if verbose:
        lines += [
            f"  {name}: {usage.peak_memory / 1e6:.0f} MB at most, "
            f"{usage.cpu_milliseconds / 1000:.2f} s of processor time"
            for name, usage in sorted(outcome.processes.items())
        ]
    return "\n".join(lines)


def require_writable(report: Path) -> None:
    """Raise `EngineError` if the report cannot be written; creates the file."""
    with _report_errors(report):
        report.open("ab").close()


def write_report(outcome: Outcome, path: Path) -> None:
    """Write the outcome as a JSON object. Raises `EngineError` if the file cannot be written."""
    with _report_errors(path):
        path.write_text(json.dumps(asdict(outcome), indent=1) + "\n", "utf-8")


@contextlib.contextmanager
def _report_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EngineError(
            f"the report {path} cannot be written: {error.strerror}; give another file"
        ) from None
