"""The `run` command: follows a server into an output folder.

It connects, checks the server's configuration and finds the binlog position to start from; then the
supervisor does the work. A run that loses its server is followed by another one, from the last commit.
"""

from __future__ import annotations

import os
import socket
import sys
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from engine.commands.addresses import address_of, addresses_of
from engine.commands.corrupt_events import CorruptEventRereads, CorruptEventSkips
from engine.commands.maintenance import Maintenance
from engine.commands.pipeline_run import plan_run, show_run
from engine.commands.reload import Reload
from engine.commands.retries import Retries
from engine.commands.run_log import RunLog
from engine.config.credentials import read_login
from engine.config.rates import RateLimit
from engine.config.server_address import Login, ServerAddress
from engine.config.setting_groups import FollowSettings, PipelineSettings
from engine.config.settings import RunSettings
from engine.config.table_filter import TableFilter
from engine.errors import EngineError
from engine.net.client import server_queries, source_facts
from engine.net.client.connect import connect, read_public_key
from engine.net.client.connection import Connection
from engine.net.client.start_position import (
    refuse_partial_transaction,
    refuse_taken_server_id,
    start_position,
)
from engine.net.client.table_columns import SERVER_DATABASES, user_tables
from engine.net.client.xa_recover import lists_late, logs_first
from engine.output.folder import OutputState, claim_output, open_output, settled_output
from engine.output.schema_history import rewritten_tables
from engine.output.snapshot_progress import SnapshotRequest
from engine.output.snapshot_requests import has_requests, pattern_of, request_snapshot, waiting_requests
from engine.output.storage import be_patient
from engine.pipeline.decoder_pool import DecoderPool
from engine.pipeline.end_request import EndRequest, SignalledEnd
from engine.pipeline.observer import Observer
from engine.pipeline.outcome import Outcome
from engine.pipeline.process_settings import ServerSource, SnapshotOptions
from engine.pipeline.supervisor import Supervisor

_FIRST_SERVER_ID = 1 << 20
"""Ids that the engine chooses are larger, since users give their servers small ones."""

SNAPSHOT = "snapshot"
"""The value of `--start` with which an output begins with the rows that are there."""
_LASTING_SECONDS = 60.0
"""A stream of this length counts as a success, even if it brought nothing."""


def run_command(
    settings: RunSettings,
    read_again: Callable[[], RunSettings] | None = None,
    log: RunLog | None = None,
) -> int:
    """Follow the server and show how that went; returns the exit code. Raises `EngineError`.

    `read_again`: the settings of the runs after a SIGHUP; None if it is to end the command.
    """
    login = read_login(settings.connection, os.environ, interactive=sys.stdin.isatty())

    def follow(observer: Observer) -> Outcome:
        if read_again is None:
            return follow_maintained(settings, login, observer, SignalledEnd())
        with Reload(lambda: _checked(read_again(), settings), observer) as reload:
            given = settings, login
            end_request = SignalledEnd(reload.is_asked)
            outcome = Outcome()
            while True:
                outcome = follow_maintained(*given, observer, end_request).add(outcome)
                if not (outcome.stopped and reload.is_asked()):
                    return outcome
                given = reload.take(given)

    return show_run(follow, settings, log, http=settings.monitoring.http)


def _checked(new: RunSettings, old: RunSettings) -> tuple[RunSettings, Login]:
    """Settings that were read again, with their login. Raises `EngineError` if they cannot be taken."""
    if new.pipeline.out.resolve() != old.pipeline.out.resolve():
        raise EngineError(
            f"out cannot change while the engine runs: start another one for {new.pipeline.out}"
        )
    if new.pipeline.shard != old.pipeline.shard:
        raise EngineError("the shard of an output cannot change: begin a new output for another one")
    login = read_login(new.connection, os.environ, interactive=False)
    # These files are read for each connection, or each run; a run must not end for one that is wrong.
    login.tls.context()
    read_public_key(login.server_public_key)
    if new.pipeline.schema_file is not None:
        # Here, because it is not needed when a run starts.
        from engine.schema.schema_file import read_schema_file

        position = open_output(new.pipeline.out).position
        read_schema_file(new.pipeline.schema_file, "mysql" if position is None else position.flavor)
    return new, login


def follow_maintained(
    settings: FollowSettings,
    login: Login,
    observer: Observer,
    end_request: EndRequest,
    decoder_pool: DecoderPool | None = None,
) -> Outcome:
    """As `follow_server`, and take care of old data meanwhile."""
    with Maintenance(settings.pipeline.out, settings.maintenance, partial(observer.warn, "maintenance")):
        return follow_server(settings, login, observer, end_request, decoder_pool)


def follow_server(
    settings: FollowSettings,
    login: Login,
    observer: Observer,
    end_request: EndRequest | None = None,
    decoder_pool: DecoderPool | None = None,
) -> Outcome:
    """Follow a server into the output folder; connect to it (or to the next one) again when it is lost.

    Each reconnect is a new run from the last commit, exactly as after a crash. `end_request`: what asks for
    an orderly end, SIGINT and SIGTERM if it is None. `decoder_pool`: decoders that several runs share; None
    for `workers` of its own. Raises `EngineError` for errors that make the first start impossible.
    """
    end_request = end_request or SignalledEnd()
    addresses = addresses_of(settings.connection, login)
    retries = Retries(settings.stream.retry_seconds)
    rereads = CorruptEventRereads()
    skips = CorruptEventSkips(settings.pipeline.on_corrupt == "skip", observer)
    before = Outcome()
    turn = 0
    begun = False
    may_assume = True
    while True:
        state = settled_output(settings.pipeline.out)
        # The first answer shows that the place is right; later the store may be away for a time.
        be_patient(settings.pipeline.out, partial(observer.warn, "store_away"))
        _request_changed(settings, state)
        try:
            address = addresses[turn % len(addresses)]
            outcome = _run_once(
                settings, address, state, skips, observer, end_request, decoder_pool, may_assume=may_assume
            )
            begun = True
        except EngineError as error:
            # Commits in the output show that an address was right. If none has worked yet, the addresses are
            # probably wrong, and trying again does not help.
            if not error.retryable or not (begun or not state.is_new or turn + 1 < len(addresses)):
                raise
            outcome = Outcome(error=str(error), retryable=True)
        may_assume = False
        if outcome.unproven and not outcome.stopped:
            observer.inform("run_again", f"{outcome.error}; the run begins again")
            continue
        worked = has_worked(outcome)
        before = outcome.add(before)
        if failed := outcome.snapshot.get("failed"):
            out = settings.pipeline.out
            tables = "1 table was" if failed == 1 else f"{failed} tables were"
            sentence = f"{tables} set aside: `binlog-engine status {out}` says why"
            if settings.stream.stop_at_end and outcome.error is None:
                # Otherwise a job that reads tables once would take an output without them for complete.
                outcome.error = sentence
            else:
                observer.warn("set_aside", sentence, tables=failed)
        if outcome.stopped:
            return outcome
        if worked:
            retries.succeeded()
        damaged = rereads.take(outcome)
        pause = retries.next_pause() if outcome.retryable or damaged else None
        if pause is None:
            if skips.take(outcome):
                continue
            return outcome
        if not (worked or damaged):
            turn += 1
        hint = ", in case it was damaged on the way" if damaged else ""
        sentence = f"{outcome.error}; trying again in {pause:.1f} s{hint}"
        observer.warn("retry", sentence, pause_seconds=round(pause, 3))
        if end_request.wait(pause):
            outcome.error, outcome.stopped = None, True
            return outcome


def has_worked(outcome: Outcome) -> bool:
    """Whether a run got so far that an error of it is not that of the attempt before."""
    return bool(outcome.totals.get("commits")) or outcome.seconds >= _LASTING_SECONDS


def _request_all_rows(settings: FollowSettings) -> None:
    """Request the snapshot with which an output begins, unless an attempt before has done so.

    Other requests may wait there: of the user, or of a first attempt with other tables.
    """
    out, tables = settings.pipeline.out, settings.pipeline.tables or ("*.*",)
    for request in waiting_requests(out):
        match request:
            case SnapshotRequest(tables=asked, excluded=(), where=None) if asked == tables:
                return
    request_snapshot(out, tables)


def _request_changed(settings: FollowSettings, state: OutputState) -> None:
    """Request snapshots of the tables that are *changed by statement*, if that is wanted."""
    out = settings.pipeline.out
    if not settings.snapshot.snapshot_when_changed or has_requests(out):
        return
    reading = {table.name for table in state.snapshots.tables if not table.ended}
    changed = [name for name in rewritten_tables(out, state.commit) if name not in reading]
    if changed:
        request_snapshot(out, tuple(map(pattern_of, changed)))


def _run_once(
    settings: FollowSettings,
    address: ServerAddress,
    state: OutputState,
    skips: CorruptEventSkips,
    observer: Observer,
    end_request: EndRequest,
    decoder_pool: DecoderPool | None,
    *,
    may_assume: bool,
) -> Outcome:
    """One run from the last commit (`state`) until the stream ends, fails, or is stopped.

    `may_assume`: what a new output begins with may wait for a proof; see `ServerSource`.
    """
    stream = settings.stream
    output_name = f"binlog-engine://{socket.gethostname()}{settings.pipeline.out.resolve()}"
    identity = uuid.uuid5(uuid.NAMESPACE_URL, output_name)
    chosen_id = _FIRST_SERVER_ID + identity.int % (0xFFFFFFFF - _FIRST_SERVER_ID)
    server_id = settings.connection.server_id or chosen_id
    with connect(address) as connection:
        start_at = "latest" if stream.start == SNAPSHOT else stream.start
        starts_at_end = state.is_new and start_at == "latest"
        # Asked before the server's GTID set, at which the stream starts.
        end = server_queries.known_end(connection) if starts_at_end else None
        facts = source_facts.read_facts(connection)
        for warning in source_facts.check(facts, str(connection.endpoint), semi_sync=stream.semi_sync):
            observer.warn("server_setting", warning)
        # From here on every connection is to this server.
        address = replace(address, server_uuid=facts.server_uuid)
        refuse_taken_server_id(connection, server_id, str(identity))
        if state.is_new and stream.start == SNAPSHOT:
            # Each chunk needs it: without the privilege no table could be read.
            server_queries.end_of_binlog(connection)
        # Only now, as an engine that cannot reach its server is to leave the output to another one.
        state = claim_output(settings.pipeline.out, state)
        start = start_position(connection, start_at, state.position, facts, partial(connect, address))
        if state.is_new:
            refuse_partial_transaction(start, facts, partial(connect, address))
            _warn_of_patterns(settings.pipeline, connection, observer)
        if state.is_new and stream.start == SNAPSHOT:
            if lists_late(connection) and server_queries.has_prepared(connection):
                _wait_until_listed(address, facts, start.file)
            _request_all_rows(settings)
    snapshot = _snapshot_options(settings, address, state)
    reads_soon = snapshot.is_unfinished or has_requests(settings.pipeline.out)
    snapshot = replace(snapshot, run_ends=stream.stop_at_end and reads_soon)
    origin = ServerSource(
        address=address,
        file=start.file,
        position=start.position,
        gtid_set=start.gtid_set,
        by_gtid=start.by_gtid,
        server_id=server_id,
        replica_uuid=str(identity),
        stop_at_end=stream.stop_at_end and not snapshot.run_ends,
        heartbeat_seconds=stream.heartbeat_seconds,
        prompt_heartbeats=reads_soon,
        semi_sync=stream.semi_sync,
        may_assume=may_assume and state.is_new,
        # A table of which only a snapshot is in the output has its definition from here alone.
        definitions_since=end,
        skips=skips.events,
        may_lose_prepared=_may_lose_prepared(facts, state),
        has_prepared=bool(state.prepared),
    )
    plan = plan_run(settings.pipeline, origin, state, facts.server_uuid or "", facts.flavor)
    plan = replace(plan, snapshot=snapshot)
    if decoder_pool is not None:
        plan = replace(plan, decoders=decoder_pool.count)
    return Supervisor(plan, observer, end_request, decoder_pool).run()


def _wait_until_listed(address: ServerAddress, facts: source_facts.SourceFacts, file: str) -> None:
    """Have the server list all prepared XA transactions whose rows come before the start of the stream.

    Readers wait for the end of what it lists.
    """
    # Here, because it needs kernels, which the supervisor does not load for other runs.
    from engine.net.client.xa_in_binlog import wait_until_listed

    wait_until_listed(partial(connect, address), facts, file)


def _may_lose_prepared(facts: source_facts.SourceFacts, state: OutputState) -> bool:
    """Whether a crash of the server may lose XA transactions that are prepared in the stream.

    Only of a server that is known to be the same: another one may not have come to their XA PREPARE yet.
    """
    is_same = state.position is None or state.position.server_uuid == facts.server_uuid
    return logs_first(facts.flavor, facts.version_tuple) and facts.server_uuid is not None and is_same


def _warn_of_patterns(settings: PipelineSettings, connection: Connection, observer: Observer) -> None:
    """Warn of the first attempt's patterns that match no table, which are probably misspelt.

    A user who sees no table at all cannot be told: the stream itself needs no privilege on tables.
    """
    patterns = TableFilter(settings.tables, settings.exclude_tables)
    if patterns.wants_all:
        return
    tables = [(database, name) for database, names in user_tables(connection).items() for name in names]
    for pattern in patterns.unmatched(tables, SERVER_DATABASES) if tables else ():
        observer.warn(
            "pattern_without_table",
            f"{pattern} matches no table that this user sees on the server: check its spelling and case",
        )


def _snapshot_options(
    settings: FollowSettings, address: ServerAddress, state: OutputState
) -> SnapshotOptions:
    given = settings.snapshot
    rate = RateLimit.parse(given.snapshot_rate)
    replica = None
    if given.snapshot_host is not None:
        replica = address_of(given.snapshot_host, "--snapshot-host", settings.connection, address.login, None)
    return SnapshotOptions(
        is_unfinished=bool(state.snapshots.requests),
        connections=given.snapshot_workers,
        when_changed=given.snapshot_when_changed,
        chunk_rows=given.snapshot_chunk_rows,
        rows_per_second=rate.rows,
        bytes_per_second=rate.bytes,
        read_from=replica,
        watched=tuple(
            address_of(name, "--snapshot-watch", settings.connection, address.login, None)
            for name in given.snapshot_watch
        ),
        max_lag=given.snapshot_max_lag,
    )
