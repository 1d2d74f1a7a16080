"""What the `run` and `decode` commands share.

It makes the plan of a run from the settings, and shows the run's progress and outcome.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from engine.commands.outcome_report import require_writable, summary, write_report
from engine.commands.run_progress import Display
from engine.config.decode_options import DecodeOptions
from engine.config.settings import PipelineSettings
from engine.config.table_filter import TableFilter
from engine.errors import EngineError
from engine.output.folder import OutputState
from engine.pipeline.process_settings import FileSource, SchemaOptions, ServerSource
from engine.pipeline.supervisor import Outcome, RunPlan, decoder_count

_COMMIT_SECONDS = 1.0


def plan_run(
    settings: PipelineSettings,
    origin: ServerSource | FileSource,
    state: OutputState,
    server_uuid: str,
    flavor: str,
) -> RunPlan:
    """The plan of a run that reads `origin` and continues the output in `state`.

    Raises `EngineError` for table patterns that are not valid.
    """
    interval = settings.commit_interval
    if interval is None:
        # Clients wait for the commits of semi-sync: each contains what arrived during the one before it.
        interval = 0.0 if isinstance(origin, ServerSource) and origin.semi_sync else _COMMIT_SECONDS
    numbers_unknown = settings.unknown_columns == "number"
    if settings.unknown_columns is None:
        numbers_unknown = isinstance(origin, FileSource)
    return RunPlan(
        origin=origin,
        out=settings.out,
        expected_commit=state.commit,
        workers=decoder_count(settings.workers),
        decode=DecodeOptions(
            tables=TableFilter(settings.tables, settings.exclude_tables),
            temporal_text=settings.temporal == "text",
            bookkeeping_events=settings.bookkeeping_events,
            names_needed=not numbers_unknown,
        ),
        schema=SchemaOptions(
            out=None if state.commit < 0 else str(settings.out),
            commit=state.commit,
            schema_file=settings.schema_file,
            numbers_unknown=numbers_unknown,
        ),
        commit_interval=interval,
        commit_bytes=settings.commit_bytes,
        server_uuid=server_uuid,
        flavor=flavor,
    )


def show_run(work: Callable[[Display], Outcome], *, report: Path | None, verbose: bool) -> int:
    """Show the progress of `work` and its outcome, also as a JSON file at `report`; returns the exit code.

    Raises `EngineError` with the outcome's error, and if the report cannot be written.
    """
    if report is not None:
        require_writable(report)
    display = Display()
    try:
        outcome = work(display)
    finally:
        display.close()
    print(summary(outcome, verbose=verbose), file=sys.stderr)
    if report is not None:
        write_report(outcome, report)
    if outcome.error is None:
        return 0
    if verbose and outcome.traceback:
        print(outcome.traceback, file=sys.stderr)
    raise EngineError(outcome.error)
