"""The `run` command: follows a server into an output folder.

It connects, checks the server's configuration and finds the binlog position to start from; then the
supervisor does the work. A run that loses its server is followed by another one, from the last commit.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import uuid
from functools import partial

from engine.commands.corrupt_events import CorruptEventRereads, CorruptEventSkips
from engine.commands.pipeline_run import plan_run, show_run
from engine.commands.retries import Retries
from engine.commands.run_progress import Display
from engine.config.credentials import read_login
from engine.config.server_address import Login, ServerAddress
from engine.config.settings import ConnectionSettings, RunSettings
from engine.errors import EngineError
from engine.net.client import server_queries
from engine.net.client.connect import connect
from engine.net.client.start_position import refuse_taken_server_id, start_position
from engine.output.folder import OutputState, settled_output
from engine.pipeline.process_settings import ServerSource
from engine.pipeline.supervisor import Outcome, Supervisor

_HOST = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^\[\]:]+))(?::(?P<port>\d{1,5}))?")
_FIRST_SERVER_ID = 1 << 20
"""Ids that the engine chooses are larger, since users give their servers small ones."""

_LASTING_SECONDS = 60.0
"""A stream of this length counts as a success, even if it brought nothing."""


def run_command(settings: RunSettings) -> int:
    """Follow the server and show how that went; returns the exit code. Raises `EngineError`."""
    login = read_login(settings.connection, os.environ, interactive=sys.stdin.isatty())
    return show_run(
        lambda display: follow_server(settings, login, display),
        report=settings.report,
        verbose=settings.verbose,
    )


def follow_server(settings: RunSettings, login: Login, display: Display) -> Outcome:
    """Follow a server into the output folder; connect to it (or to the next one) again when it is lost.

    Each reconnect is a new run from the last commit, exactly as after a crash. Raises `EngineError` for
    errors that make the first start impossible.
    """
    addresses = _addresses(settings.connection, login)
    retries = Retries(settings.stream.retry_seconds)
    rereads = CorruptEventRereads()
    skips = CorruptEventSkips(settings.pipeline.on_corrupt == "skip", display)
    before = Outcome()
    turn = 0
    begun = False
    while True:
        state = settled_output(settings.pipeline.out)
        try:
            outcome = _run_once(settings, addresses[turn % len(addresses)], state, skips, display)
            begun = True
        except EngineError as error:
            # Commits in the output show that an address was right. If none has worked yet, the addresses are
            # probably wrong, and trying again does not help.
            if not error.retryable or not (begun or state.commit >= 0 or turn + 1 < len(addresses)):
                raise
            outcome = Outcome(error=str(error), retryable=True)
        worked = bool(outcome.totals.get("commits")) or outcome.seconds >= _LASTING_SECONDS
        before = outcome.add(before)
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
        display.warn(f"{outcome.error}; trying again in {pause:.1f} s{hint}")
        if _stopped_while_waiting(pause):
            outcome.error, outcome.stopped = None, True
            return outcome


def _stopped_while_waiting(seconds: float) -> bool:
    """Wait; True if SIGINT or SIGTERM arrived meanwhile."""
    asking = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, asking)
    try:
        return signal.sigtimedwait(asking, seconds) is not None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _addresses(settings: ConnectionSettings, login: Login) -> list[ServerAddress]:
    """The servers in `--host`, each optionally with its port (`db1,db2:3307,[::1]:3306`)."""
    addresses = []
    for name in settings.host.split(","):
        match = _HOST.fullmatch(name.strip())
        if match is None:
            raise EngineError(f"--host {settings.host} names no server in {name!r}: give HOST or HOST:PORT")
        host, port = match["v6"] or match["host"], int(match["port"] or settings.port)
        addresses.append(ServerAddress(host, port, login, settings.unix_socket))
    return addresses


def _run_once(
    settings: RunSettings,
    address: ServerAddress,
    state: OutputState,
    skips: CorruptEventSkips,
    display: Display,
) -> Outcome:
    """One run from the last commit (`state`) until the stream ends, fails, or is stopped."""
    stream = settings.stream
    output_name = f"binlog-engine://{socket.gethostname()}{settings.pipeline.out.resolve()}"
    identity = uuid.uuid5(uuid.NAMESPACE_URL, output_name)
    chosen_id = _FIRST_SERVER_ID + identity.int % (0xFFFFFFFF - _FIRST_SERVER_ID)
    server_id = settings.connection.server_id or chosen_id
    with connect(address) as connection:
        starts_at_end = state.commit < 0 and stream.start == "latest"
        # Asked before the server's GTID set, at which the stream starts.
        end = server_queries.known_end(connection) if starts_at_end else None
        facts = server_queries.read_facts(connection)
        for warning in server_queries.check(facts, str(connection.endpoint), semi_sync=stream.semi_sync):
            display.warn(warning)
        refuse_taken_server_id(connection, server_id, str(identity))
        start = start_position(connection, stream.start, state.position, facts, partial(connect, address))
    origin = ServerSource(
        address=address,
        file=start.file,
        position=start.position,
        gtid_set=start.gtid_set,
        by_gtid=start.by_gtid,
        server_id=server_id,
        replica_uuid=str(identity),
        stop_at_end=stream.stop_at_end,
        server_uuid=facts.server_uuid,
        heartbeat_seconds=stream.heartbeat_seconds,
        semi_sync=stream.semi_sync,
        lower_case_table_names=facts.lower_case_table_names,
        definitions_since=end if facts.lacks_names else None,
        skips=skips.events,
    )
    plan = plan_run(settings.pipeline, origin, state, facts.server_uuid or "", facts.flavor)
    return Supervisor(plan, display.progress).run()
