"""The step from the parsed arguments to a command: one function for each, named as the command.

It resolves the command's settings, starts the fork server where it is needed, and only then imports the
command's modules, so that these imports and those of the fork server overlap. Signals wait for the end of
an import: an exception in the middle of one may be replaced by another, or lost.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from engine.config.resolve import resolve
from engine.config.setting_groups import ConnectionSettings, LogSettings
from engine.config.settings import (
    CheckSettings,
    CompactSettings,
    CompareSettings,
    ConsumersSettings,
    DecodeSettings,
    FileEventsSettings,
    MirrorSettings,
    RunSettings,
    ServerEventsSettings,
    ServeSettings,
    SnapshotSettings,
    SqlSettings,
    VacuumSettings,
    VerifySettings,
)
from engine.config.variables import misspelled_variables
from engine.errors import EngineError, printable
from engine.pipeline.fork_server import start_fork_server
from engine.pipeline.observer import Happening
from engine.pipeline.stop_signals import signals_blocked

if TYPE_CHECKING:
    from engine.commands.run_log import RunLog
    from engine.config.fleet_file import FleetFile


def run(options: argparse.Namespace) -> int:
    """Follow a server. Without a terminal, SIGHUP has it read its settings again."""

    def settings() -> RunSettings:
        return resolve(RunSettings, vars(options), os.environ, options.config)

    given = settings()

    def command(log: RunLog | None) -> int:
        # Started first, so that it imports its modules while the command imports its own.
        start_fork_server()
        with signals_blocked():
            from engine.commands.run import run_command
        return run_command(given, None if sys.stdin.isatty() else settings, log)

    return _logged(given.log, command)


def decode(options: argparse.Namespace) -> int:
    """Decode local binlog files."""
    given = resolve(DecodeSettings, vars(options), os.environ, options.config)

    def command(log: RunLog | None) -> int:
        start_fork_server()
        with signals_blocked():
            from engine.commands.decode import decode_command
        return decode_command(given, log)

    return _logged(given.log, command)


def fleet(options: argparse.Namespace) -> int:
    """Follow many servers, or ask or reload the process that does."""
    with signals_blocked():
        from engine.config.fleet_file import read_fleet
    action, path = _fleet_words(options.words)

    def read() -> FleetFile:
        return read_fleet(path, vars(options), os.environ)

    given = read()
    if action == "status":
        with signals_blocked():
            from engine.commands.fleet.status import status_command
        return status_command(given, as_json=options.as_json)
    if action == "reload":
        with signals_blocked():
            from engine.commands.fleet.reload import reload_command
        return reload_command(given)

    def command(log: RunLog | None) -> int:
        start_fork_server()
        with signals_blocked():
            from engine.commands.fleet.command import fleet_command
        return fleet_command(given, read, log, on_terminal=sys.stdin.isatty())

    return _logged(given.settings.log, command)


def _fleet_words(words: list[str]) -> tuple[str, Path]:
    """What to do, and the fleet's file. Raises `EngineError`."""
    match words:
        case [file]:
            return "run", Path(file)
        case ["status" | "reload" as action, file]:
            return action, Path(file)
    raise EngineError(
        f"`fleet {' '.join(words)}` is not known: write `fleet FILE`, `fleet status FILE` or `fleet reload "
        "FILE`"
    )


def _logged(settings: LogSettings, command: Callable[[RunLog | None], int]) -> int:
    """The exit code of a command that gets the log that `settings` ask for, or None."""

    def warned(log: RunLog | None) -> int:
        warn_of_variables(log)
        return command(log)

    if settings.log_format is None:
        return warned(None)
    with signals_blocked():
        from engine.commands.logged import logged
    return logged(settings, warned)


def warn_of_variables(log: RunLog | None = None) -> None:
    """Say in the log, or on standard error, which variables look like those of settings, but are ignored."""
    for sentence in misspelled_variables(os.environ):
        if log is None:
            print(f"binlog-engine: warning: {printable(sentence)}", file=sys.stderr)
        else:
            log.write(Happening("warning", "variable", sentence))


def events(options: argparse.Namespace) -> int:
    """Show the events of files or, without files, of a server."""
    with signals_blocked():
        from engine.commands.events import file_events_command, server_events_command
    if options.files:
        return file_events_command(resolve(FileEventsSettings, vars(options), os.environ))
    if options.host is None and options.socket is None:
        raise EngineError("name the binlog files to show, or a server with --host")
    return server_events_command(resolve(ServerEventsSettings, vars(options), os.environ))


def status(options: argparse.Namespace) -> int:
    """Show what an output contains."""
    with signals_blocked():
        from engine.commands.status import print_status
    return print_status(options.out, as_json=options.as_json)


def schema(options: argparse.Namespace) -> int:
    """Show the table definitions of an output."""
    with signals_blocked():
        from engine.commands.schema import print_schema
    return print_schema(options.out, options.table, options.at, as_json=options.as_json)


def snapshot(options: argparse.Namespace) -> int:
    """Request a snapshot of a running engine, or cancel one."""
    with signals_blocked():
        from engine.commands.snapshot import snapshot_command
    return snapshot_command(resolve(SnapshotSettings, vars(options), os.environ))


def compare(options: argparse.Namespace) -> int:
    """Compare the rows of an output with those of its server."""
    with signals_blocked():
        from engine.commands.compare import compare_command
    return compare_command(resolve(CompareSettings, vars(options), os.environ))


def check(options: argparse.Namespace) -> int:
    """Examine a server, an output and Spark before a run."""
    with signals_blocked():
        from engine.commands.check import check_command
    return check_command(resolve(CheckSettings, vars(options), os.environ))


def sql(options: argparse.Namespace) -> int:
    """Print changes as statements: of an output, of files or, without either, of a server."""
    settings = resolve(SqlSettings, vars(options), os.environ)
    if settings.output is None:
        start_fork_server()
    with signals_blocked():
        from engine.commands.sql import sql_command
    if settings.sources:
        return sql_command(settings, None)
    if options.host is None and options.socket is None:
        raise EngineError("name an output, binlog files, or a server with --host")
    return sql_command(settings, resolve(ConnectionSettings, vars(options), os.environ))


def vacuum(options: argparse.Namespace) -> int:
    """Remove old commits of an output."""
    with signals_blocked():
        from engine.commands.vacuum import vacuum_command
    return vacuum_command(resolve(VacuumSettings, vars(options), os.environ))


def consumers(options: argparse.Namespace) -> int:
    """Show the consumers of an output, or remove one."""
    with signals_blocked():
        from engine.commands.consumers import consumers_command
    return consumers_command(resolve(ConsumersSettings, vars(options), os.environ))


def compact(options: argparse.Namespace) -> int:
    """Merge the small files of an output."""
    with signals_blocked():
        from engine.commands.compact import compact_command
    return compact_command(resolve(CompactSettings, vars(options), os.environ))


def verify(options: argparse.Namespace) -> int:
    """Compare the files of an output with its commit log."""
    with signals_blocked():
        from engine.commands.verify import verify_command
    return verify_command(resolve(VerifySettings, vars(options), os.environ))


def mirror(options: argparse.Namespace) -> int:
    """Keep the tables of an output as Delta or Iceberg tables."""
    with signals_blocked():
        from engine.commands.mirror import mirror_command
    return mirror_command(resolve(MirrorSettings, vars(options), os.environ))


def serve(options: argparse.Namespace) -> int:
    """Serve binlog files to replicas."""
    with signals_blocked():
        from engine.commands.serve import serve_command
    return serve_command(resolve(ServeSettings, vars(options), os.environ))


def demo(options: argparse.Namespace) -> int:
    """Show the whole way, from sample binlogs into Spark."""
    start_fork_server()
    with signals_blocked():
        from engine.commands.demo import demo_command
    return demo_command()
