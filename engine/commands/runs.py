"""The two commands that fill an output folder: `run` from a server, `decode` from files.

Each finds out where to start and whether everything is in order, before the first process starts; then the
supervisor does the work.
"""

from __future__ import annotations

import re
import signal
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from engine.binlog.event_types import HEADER_LENGTH
from engine.binlog.files import MAGIC_LENGTH, file_order, open_binlog
from engine.binlog.format_description import FormatDescription
from engine.binlog.position import SourcePosition
from engine.commands.progress import Display
from engine.commands.retries import Retries
from engine.commands.skips import Rereads, Skips
from engine.config.decode_options import DecodeOptions
from engine.config.server_address import Login, ServerAddress
from engine.config.table_filter import TableFilter
from engine.errors import BinlogError, EngineError, EventError
from engine.net.client import server_queries
from engine.net.client.connect import connect
from engine.net.client.start_position import refuse_taken_server_id, start_position
from engine.output.folder import OutputState, settled_output
from engine.pipeline.process_settings import FileSource, ServerSource
from engine.pipeline.supervisor import Outcome, RunPlan, Supervisor, decoder_count

_HOST = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^\[\]:]+))(?::(?P<port>\d{1,5}))?")
_FIRST_SERVER_ID = 1 << 20
"""Ids that we choose ourselves are larger: people give their servers small ones."""

_COMMIT_SECONDS = 1.0
_LASTING_SECONDS = 60.0
"""A stream that lasted so long has worked, even if it brought nothing."""


def run_server(values: Mapping[str, Any], login: Login, display: Display) -> Outcome:
    """Follow a server into the output folder, coming back to it (or to the next one) when it is lost.

    Each return is a new run from the last commit: there is one way to go on, and a crash takes it as well.
    Raises `EngineError` for what makes the first start impossible.
    """
    out = Path(values["out"])
    addresses = _addresses(values, login)
    retries = Retries(values["retry_seconds"])
    rereads = Rereads()
    skips = Skips(values["on_corrupt"] == "skip", display)
    before = Outcome()
    turn = 0
    begun = False
    while True:
        state = settled_output(out)
        try:
            outcome = _run_once(values, addresses[turn % len(addresses)], state, skips, display)
            begun = True
        except EngineError as error:
            # An output with commits shows that the server has worked. Where no address has worked yet, most
            # likely there is a mistake in them.
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
    """Wait; true if a signal asked for the end meanwhile."""
    asking = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, asking)
    try:
        return signal.sigtimedwait(asking, seconds) is not None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _addresses(values: Mapping[str, Any], login: Login) -> list[ServerAddress]:
    """`--host` may name several servers, each with a port of its own (`db1,db2:3307,[::1]:3306`)."""
    addresses = []
    for name in values["host"].split(","):
        match = _HOST.fullmatch(name.strip())
        if match is None:
            raise EngineError(f"--host {values['host']} names no server in {name!r}: give HOST or HOST:PORT")
        host, port = match["v6"] or match["host"], int(match["port"] or values["port"])
        addresses.append(ServerAddress(host, port, login, values["socket"]))
    return addresses


def _run_once(
    values: Mapping[str, Any], address: ServerAddress, state: OutputState, skips: Skips, display: Display
) -> Outcome:
    """From the last commit, as `state` has it, until the stream ends, fails, or is stopped."""
    output_name = f"binlog-engine://{socket.gethostname()}{Path(values['out']).resolve()}"
    identity = uuid.uuid5(uuid.NAMESPACE_URL, output_name)
    server_id = values["server_id"] or _FIRST_SERVER_ID + identity.int % (0xFFFFFFFF - _FIRST_SERVER_ID)
    with connect(address) as connection:
        facts = server_queries.read_facts(connection)
        for warning in server_queries.check(facts, str(connection.endpoint), semi_sync=values["semi_sync"]):
            display.warn(warning)
        refuse_taken_server_id(connection, server_id, str(identity))
        place = start_position(connection, values["start"], state.position, facts, partial(connect, address))
    origin = ServerSource(
        address=address,
        file=place.file,
        position=place.position,
        gtid_set=place.gtid_set,
        by_gtid=place.by_gtid,
        server_id=server_id,
        replica_uuid=str(identity),
        stop_at_end=values["stop_at_end"],
        server_uuid=facts.server_uuid,
        heartbeat_seconds=values["heartbeat_seconds"],
        semi_sync=values["semi_sync"],
        name_unknown_columns=values["unknown_columns"] == "number",
        skips=skips.places,
    )
    plan = _plan(values, origin, state, facts.server_uuid or "", facts.flavor)
    return Supervisor(plan, display.progress).run()


def decode_files(values: Mapping[str, Any], files: Sequence[Path], display: Display) -> Outcome:
    """Decode local binlog files into the output folder, from where it ends if it has some of them already."""
    flavor = _flavor(files[0])
    for path in files[1:]:
        open_binlog(path).close()
    skips = Skips(values["on_corrupt"] == "skip", display)
    before = Outcome()
    while True:
        state = settled_output(Path(values["out"]))
        origin = replace(_remaining(files, state.position), skips=skips.places)
        outcome = Supervisor(_plan(values, origin, state, "", flavor), display.progress).run()
        before = outcome.add(before)
        if not skips.take(outcome):
            return outcome


def _plan(
    values: Mapping[str, Any],
    origin: ServerSource | FileSource,
    state: OutputState,
    server_uuid: str,
    flavor: str,
) -> RunPlan:
    interval = values["commit_interval"]
    if interval is None:
        # Commits that clients wait for: each takes what came while the one before it was made.
        interval = 0.0 if isinstance(origin, ServerSource) and origin.semi_sync else _COMMIT_SECONDS
    return RunPlan(
        origin=origin,
        out=Path(values["out"]),
        expected_commit=state.commit,
        workers=decoder_count(values["workers"]),
        decode=DecodeOptions(
            tables=TableFilter(values["tables"], values["exclude_tables"]),
            temporal_text=values["temporal"] == "text",
            bookkeeping_events=values["bookkeeping_events"],
            names_needed=isinstance(origin, ServerSource) and not origin.name_unknown_columns,
        ),
        commit_interval=interval,
        commit_bytes=values["commit_bytes"],
        server_uuid=server_uuid,
        flavor=flavor,
    )


def _flavor(path: Path) -> str:
    with open_binlog(path) as file:
        header = file.read(HEADER_LENGTH)
        event = header + file.read(max(0, int.from_bytes(header[9:13], "little") - HEADER_LENGTH))
    try:
        return FormatDescription.parse(event).flavor
    except EventError as error:
        raise BinlogError(path.name, MAGIC_LENGTH, error.reason) from None


def _remaining(files: Sequence[Path], position: SourcePosition | None) -> FileSource:
    """The files from where the output ends on."""
    if position is None:
        return FileSource(tuple(files))
    if position.server_uuid:
        raise EngineError("the output folder follows a server: decode files into a folder of their own")
    names = [path.name for path in files]
    if position.file in names:
        first = names.index(position.file)
        return FileSource(tuple(files[first:]), position.position, position.gtid_set)
    if min(map(file_order, names)) < file_order(position.file):
        raise EngineError(
            f"the output folder goes on at {position.file} position {position.position}: give that file, or "
            "later ones, or a new folder"
        )
    return FileSource(tuple(files), gtid_set=position.gtid_set)
