"""What the `run` and `decode` commands share.

It makes the plan of a run from the settings, and shows the run's progress and outcome: on standard error, in
the log, over HTTP.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.commands.narrator import Narrator
from engine.commands.outcome_report import require_writable, summary, write_report
from engine.commands.run_log import RunLog
from engine.commands.run_progress import Display
from engine.config.decode_options import DecodeOptions
from engine.config.output_place import OutputPlace
from engine.config.setting_groups import PipelineSettings
from engine.config.settings import DecodeSettings, RunSettings
from engine.config.shard import Shard
from engine.config.table_filter import TableFilter
from engine.errors import EngineError, printable
from engine.output.folder import OutputState
from engine.pipeline.observer import Happening, Observer, Observers
from engine.pipeline.outcome import Outcome
from engine.pipeline.plan import RunPlan, decoder_count
from engine.pipeline.process_settings import FileSource, SchemaOptions, ServerSource
from engine.pipeline.stop_signals import signals_blocked

_COMMIT_SECONDS = 1.0


def plan_run(
    settings: PipelineSettings,
    origin: ServerSource | FileSource,
    state: OutputState,
    server_uuid: str,
    flavor: str,
) -> RunPlan:
    """The plan of a run that reads `origin` and continues the output in `state`.

    Raises `EngineError` for table patterns and a shard that are not valid, and for another shard's output.
    """
    shard = None if settings.shard is None else Shard.parse(settings.shard)
    _require_same_shard(state, shard)
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
        decoders=decoder_count(settings.workers),
        decode=DecodeOptions(
            tables=TableFilter(settings.tables, settings.exclude_tables, shard),
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


def _require_same_shard(state: OutputState, shard: Shard | None) -> None:
    """A table that came to another output, or left one, would have a gap there, or be in two."""
    given, before = str(shard or ""), state.shard
    if not state.is_new and given != before:
        raise EngineError(
            f"the output folder contains {f'shard {before}' if before else 'all tables, not a shard'}: "
            f"{f'give --shard {before}' if before else 'leave out --shard'}, or give it an empty folder"
        )


def show_run(
    work: Callable[[Observer], Outcome],
    settings: RunSettings | DecodeSettings,
    log: RunLog | None = None,
    http: str | None = None,
) -> int:
    """Show the progress of `work` and its outcome, also in the log and the report; returns the exit code.

    `http`: where to serve metrics and the status page. Raises `EngineError` with the outcome's error, except
    if it is in the log, that of `work`, and if the report cannot be written.
    """
    if settings.report is not None:
        require_writable(settings.report)
    run = uuid.uuid4().hex[:8] if log is None else log.run
    display = Display() if log is None else Display(log.stream, log)
    try:
        with _monitored(http, settings.pipeline.out, run, display) as monitor:
            listener = Observers(display, monitor)
            outcome = work(Observers(listener, Narrator(listener)))
    finally:
        display.close()
    if settings.report is not None:
        write_report(outcome, settings.report)
    if log is not None:
        _log_outcome(log, outcome)
    else:
        print(printable(summary(outcome, verbose=settings.verbose)), file=sys.stderr)
    if outcome.error is None or log is not None:
        return 0 if outcome.error is None else 1
    if settings.verbose and outcome.traceback:
        print(printable(outcome.traceback), file=sys.stderr)
    raise EngineError(outcome.error)


def _log_outcome(log: RunLog, outcome: Outcome) -> None:
    totals = {name: outcome.totals.get(name, 0) for name in ("rows", "transactions", "commits")}
    values = {**totals, "seconds": round(outcome.seconds, 3), "stopped": outcome.stopped}
    log.write(Happening("info", "ended", summary(outcome, verbose=False), values))
    if outcome.error is not None:
        traceback = {} if outcome.traceback is None else {"traceback": outcome.traceback}
        log.write(Happening("error", "failed", outcome.error, traceback))


@contextmanager
def _monitored(http: str | None, out: OutputPlace, run: str, listener: Observer) -> Iterator[Observer]:
    """What observes the command for the HTTP server; nothing does without one. Raises `EngineError`."""
    if http is None:
        yield Observer()
        return
    # Imported only here: most commands have no such server, and start faster without its modules.
    with signals_blocked():
        from engine.monitoring.service import monitored
    with monitored(http, out, run, listener) as monitor:
        yield monitor
