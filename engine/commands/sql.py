"""The `sql` command: changes as SQL statements, from an output, binlog files or a server.

Files and servers are first decoded into a temporary output that only this user can read, so there is one way
from change rows to statements. The script is complete before its first line is printed: of one that cannot be
made, no part is printed.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TextIO

from engine.commands.addresses import addresses_of
from engine.commands.decode import decode_files
from engine.commands.run import follow_server
from engine.commands.run_progress import Display
from engine.config.credentials import read_login
from engine.config.server_address import Login
from engine.config.setting_groups import ConnectionSettings, PipelineSettings, StreamSettings
from engine.config.settings import DecodeSettings, RunSettings, SqlSettings
from engine.config.table_filter import TableFilter
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.net.client.connect import connect
from engine.net.client.table_columns import describe_table
from engine.output.commit import Commit
from engine.output.commit_log import CommitLog
from engine.output.files import opening
from engine.output.folder import open_output
from engine.output.storage import OutputPlace
from engine.output.table_names import require_matches
from engine.pipeline.outcome import Outcome
from engine.schema.schema_file import read_schema_file
from engine.schema.session import Flavor
from engine.sql.entries import Entries
from engine.sql.script import redo_script, undo_script
from engine.sql.selection import GtidChoice, Selection, parse_bound
from engine.sql.tables import Elsewhere, nowhere


@dataclass(frozen=True, slots=True)
class _Server:
    """The server whose changes are wanted."""

    connection: ConnectionSettings
    login: Login


def sql_command(settings: SqlSettings, connection: ConnectionSettings | None) -> int:
    """Print the script; returns the exit code. Raises `EngineError`.

    The changes are those of the server of `connection`, if there is one, else of `settings.sources`.
    """
    server = None
    if connection is not None:
        login = read_login(connection, os.environ, interactive=sys.stdin.isatty())
        server = _Server(connection, login)
    with _output(settings, server) as out, tempfile.TemporaryFile("w+", encoding="utf-8") as script:
        with _definitions(settings, server, out) as elsewhere:
            write_script(out, settings, script, elsewhere)
        script.seek(0)
        # As bytes: the script is UTF-8, whatever the encoding of the terminal.
        shutil.copyfileobj(script.buffer, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    return 0


def write_script(
    out: OutputPlace, settings: SqlSettings, script: TextIO, elsewhere: Elsewhere = nowhere
) -> None:
    """Write the script of an output's changes. Raises `EngineError`."""
    with opening(out):
        log = CommitLog(out)
        last = log.latest()
        if last is None:
            return
        flavor = _flavor(last)
        selection = _selection(settings, flavor)
        entries = Entries(log, selection, elsewhere).read(backward=settings.undo)
        make = undo_script if settings.undo else redo_script
        for line in make(entries, selection, flavor):
            script.write(line + "\n")


def _selection(settings: SqlSettings, flavor: str) -> Selection:
    return Selection(
        TableFilter(settings.tables, settings.exclude_tables),
        None if settings.since is None else parse_bound(settings.since, "--since"),
        None if settings.until is None else parse_bound(settings.until, "--until"),
        None if settings.gtids is None else GtidChoice.parse(settings.gtids, flavor),
    )


def _flavor(commit: Commit) -> Flavor:
    return "mariadb" if commit.position.flavor == "mariadb" else "mysql"


@contextmanager
def _definitions(settings: SqlSettings, server: _Server | None, out: OutputPlace) -> Iterator[Elsewhere]:
    """Where definitions come from that the output lacks: the server, else the schema file."""
    last = CommitLog(out).latest()
    if server is not None:
        with connect(addresses_of(server.connection, server.login)[0]) as asking:
            yield lambda name: describe_table(asking, name.database, name.table)
    elif settings.schema_file is not None and last is not None:
        yield read_schema_file(settings.schema_file, _flavor(last)).get
    else:
        yield nowhere


@contextmanager
def _output(settings: SqlSettings, server: _Server | None) -> Iterator[OutputPlace]:
    """The output to read: the user's, or a temporary one that is removed afterwards."""
    if server is None and (given := settings.output) is not None:
        if open_output(given).commit < 0:
            raise EngineError(f"there is no output of binlog-engine in {given}: give one, or binlog files")
        with opening(given):
            log = CommitLog(given)
            require_matches(log, log.latest_version(), settings.tables)
        yield given
        return
    # Refuses wrong values before anything is decoded.
    _selection(settings, "mariadb" if settings.gtids and ":" not in settings.gtids else "mysql")
    with tempfile.TemporaryDirectory(prefix="binlog-engine-sql-") as folder:
        out = Path(folder) / "changes"
        pipeline = PipelineSettings(
            out=out,
            tables=settings.tables,
            exclude_tables=settings.exclude_tables,
            temporal="text",
            bookkeeping_events=True,
            unknown_columns="stop",
            schema_file=settings.schema_file,
        )
        display = Display()
        try:
            outcome = _decode(settings, server, pipeline, display)
        finally:
            display.close()
        if outcome.error is not None:
            raise EngineError(outcome.error)
        if outcome.stopped:
            raise KeyboardInterrupt
        yield out


def _decode(
    settings: SqlSettings, server: _Server | None, pipeline: PipelineSettings, display: Display
) -> Outcome:
    if server is None:
        return decode_files(DecodeSettings(files=settings.files, pipeline=pipeline), display)
    stream = StreamSettings(start=_start(settings), stop_at_end=True)
    run = RunSettings(connection=server.connection, pipeline=pipeline, stream=stream)
    return follow_server(run, server.login, display)


def _start(settings: SqlSettings) -> str:
    """Where on the server to begin: at `--since`, from the start of the file if that is a position."""
    if settings.since is None:
        return "earliest"
    since = parse_bound(settings.since, "--since")
    return since.isoformat() if isinstance(since, datetime) else f"{since.file}:4"
