"""The `binlog-engine` command line: parses the arguments and calls one function per command.

Each command's modules are imported only when it runs, so that `--help` is fast. Errors of the user or the
environment are printed as one sentence on standard error, with exit code 1, and with a traceback only for -v.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.config.flags import add_flags, refuse_password
from engine.config.output_place import output_place
from engine.config.resolve import resolve
from engine.config.setting_groups import ConnectionSettings, LogSettings
from engine.config.settings import (
    CheckSettings,
    CompactSettings,
    ConsumersSettings,
    DecodeSettings,
    FileEventsSettings,
    FleetSettings,
    MirrorSettings,
    RunSettings,
    ServerEventsSettings,
    ServeSettings,
    SnapshotSettings,
    SqlSettings,
    VacuumSettings,
    VerifySettings,
)
from engine.errors import EngineError, os_error_sentence, printable
from engine.pipeline.fork_server import start_fork_server
from engine.pipeline.stop_signals import Terminated, stop_signals_raised

if TYPE_CHECKING:
    from engine.commands.run_log import RunLog
    from engine.config.fleet_file import FleetFile

Command = Callable[[argparse.Namespace], int]

_OUTPUT = "output folder, or its URL"
_FILES = "binlog files, the oldest first"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    parser = _parser()
    try:
        options = parser.parse_args(arguments)
    except EngineError as error:
        print(f"binlog-engine: {printable(str(error))}", file=sys.stderr)
        return 1
    command: Command = options.command
    try:
        with stop_signals_raised():
            return command(options)
    except EngineError as error:
        if options.verbose:
            traceback.print_exc()
        print(f"binlog-engine: {printable(str(error))}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output has closed it; without stdout Python prints no error about that at exit.
        sys.stdout = None  # type: ignore[assignment]
        return 1
    except OSError as error:
        if options.verbose:
            traceback.print_exc()
        print(f"binlog-engine: {printable(os_error_sentence(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        if options.lasting:
            return 0
        return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="binlog-engine", description="Every MySQL and MariaDB change into Arrow files that Spark reads."
    )
    verbose = argparse.ArgumentParser(add_help=False)
    verbose.add_argument("-v", "--verbose", action="store_true", help="tracebacks, and memory per process")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function: Command, text: str, *, lasting: bool = False) -> argparse.ArgumentParser:
        """Add a command; a signal that stops a `lasting` one is not a failure: the exit code is 0."""
        command = commands.add_parser(name, help=text, description=text, parents=[verbose])
        command.set_defaults(command=function, lasting=lasting)
        return command

    run = add("run", _run, "follow a server into an output folder", lasting=True)
    add_flags(run, RunSettings)
    refuse_password(run)

    decode = add("decode", _decode, "decode local binlog files into an output folder", lasting=True)
    decode.add_argument("files", nargs="+", type=Path, metavar="FILE", help=_FILES)
    add_flags(decode, DecodeSettings)

    for command in (run, decode):
        command.add_argument("--config", type=Path, help="TOML file with any of these settings")
        command.add_argument("--report", type=Path, help="file for how the run ended, as JSON")

    fleet = add("fleet", _fleet, "follow many servers, as a file lists them", lasting=True)
    fleet.usage = "%(prog)s [status|reload] FILE [options]"
    fleet.add_argument(
        "words",
        nargs="+",
        metavar="[status|reload] FILE",
        help="TOML file of the fleet: follow its servers; or show their status, or have the running fleet "
        "read the file again",
    )
    add_flags(fleet, FleetSettings)
    fleet.add_argument("--json", dest="as_json", action="store_true", help="status: one JSON object")

    events = add("events", _events, "show what is in binlog files, or on a server (--host), event by event")
    events.add_argument("files", nargs="*", type=Path, metavar="FILE", help=_FILES)
    add_flags(events, ConnectionSettings)
    refuse_password(events)
    events.add_argument(
        "--start",
        default="earliest",
        help="first event of the server: FILE:POSITION, gtid:SET, or a time [earliest]",
    )
    events.add_argument("--json", dest="as_json", action="store_true", help="one JSON object per event")

    status = add("status", _status, "what an output contains, and its lag")
    status.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    status.add_argument("--json", dest="as_json", action="store_true", help="one JSON object")

    schema = add("schema", _schema, "the table definitions of an output, and the statements that led to them")
    schema.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    schema.add_argument("table", nargs="?", metavar="TABLE", help="database.table, for its history")
    schema.add_argument(
        "--at",
        metavar="COMMIT|TIME",
        help="definitions at this commit or time, not at the last commit, nor a table's history",
    )
    schema.add_argument("--json", dest="as_json", action="store_true", help="one JSON object")

    snapshot = add("snapshot", _snapshot, "have the engine read the rows that tables have now")
    snapshot.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    add_flags(snapshot, SnapshotSettings)

    check = add("check", _check, "what a server, an output and Spark lack before a run")
    add_flags(check, CheckSettings)
    refuse_password(check)
    check.add_argument("--json", dest="as_json", action="store_true", help="one JSON object")

    sql = add("sql", _sql, "changes as SQL statements that make them again, or undo them")
    sql.add_argument(
        "sources", nargs="*", type=output_place, metavar="OUT|FILE", help=f"{_OUTPUT}; or {_FILES}"
    )
    add_flags(sql, SqlSettings)
    add_flags(sql, ConnectionSettings)
    refuse_password(sql)

    vacuum = add("vacuum", _vacuum, "remove old commits from an output, with their data files")
    vacuum.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    vacuum.add_argument(
        "--retain",
        "--older-than",
        required=True,
        metavar="AGE|SIZE",
        help="what to keep, such as 30d or 500GB; removes segments of the log, of a thousand commits each",
    )
    vacuum.add_argument("--dry-run", action="store_true", help="only print what would be removed")

    consumers = add("consumers", _consumers, "the consumers of an output, and how far each has read")
    consumers.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    consumers.add_argument("--remove", metavar="NAME", help="remove a consumer: no commit is kept for it")

    compact = add("compact", _compact, "merge the small files of old commits into large ones")
    compact.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    add_flags(compact, CompactSettings)

    verify = add("verify", _verify, "compare every file of an output with its commit log")
    verify.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)

    mirror = add("mirror", _mirror, "keep the tables of an output as Delta or Iceberg tables", lasting=True)
    mirror.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    add_flags(mirror, MirrorSettings)

    serve = add("serve", _serve, "serve binlog files to any replication client", lasting=True)
    serve.add_argument("files", nargs="+", type=Path, metavar="FILE", help=_FILES)
    serve.add_argument("--port", type=int, default=0, help="port to listen on [any free one]")
    serve.add_argument("--address", default="127.0.0.1", help="address to listen on [127.0.0.1]")
    serve.add_argument("--user", default="repl", help="user that clients log in as [repl]")
    serve.add_argument("--password-env", help="environment variable that holds the password [empty password]")
    serve.add_argument("--tls-cert", type=Path, help="server certificate; by default one made for this run")
    serve.add_argument("--tls-key", type=Path, help="file of its key; by default it is in the same file")

    add("demo", _demo, "sample binlogs through the whole engine into a Spark streaming query")
    return parser


def _run(options: argparse.Namespace) -> int:
    def settings() -> RunSettings:
        return resolve(RunSettings, vars(options), os.environ, options.config)

    given = settings()

    def command(log: RunLog | None) -> int:
        # Started first, so that it imports its modules while the command imports its own.
        start_fork_server()
        from engine.commands.run import run_command

        return run_command(given, None if sys.stdin.isatty() else settings, log)

    return _logged(given.log, command)


def _decode(options: argparse.Namespace) -> int:
    given = resolve(DecodeSettings, vars(options), os.environ, options.config)

    def command(log: RunLog | None) -> int:
        start_fork_server()
        from engine.commands.decode import decode_command

        return decode_command(given, log)

    return _logged(given.log, command)


def _fleet(options: argparse.Namespace) -> int:
    from engine.config.fleet_file import read_fleet

    action, path = _fleet_words(options.words)

    def read() -> FleetFile:
        return read_fleet(path, vars(options), os.environ)

    given = read()
    if action == "status":
        from engine.commands.fleet.status import status_command

        return status_command(given, as_json=options.as_json)
    if action == "reload":
        from engine.commands.fleet.reload import reload_command

        return reload_command(given)

    def command(log: RunLog | None) -> int:
        start_fork_server()
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
    if settings.log_format is None:
        return command(None)
    from engine.commands.logged import logged

    return logged(settings, command)


def _events(options: argparse.Namespace) -> int:
    from engine.commands.events import file_events_command, server_events_command

    if options.files:
        return file_events_command(resolve(FileEventsSettings, vars(options), os.environ))
    if options.host is None and options.socket is None:
        raise EngineError("name the binlog files to show, or a server with --host")
    return server_events_command(resolve(ServerEventsSettings, vars(options), os.environ))


def _status(options: argparse.Namespace) -> int:
    from engine.commands.status import print_status

    return print_status(options.out, as_json=options.as_json)


def _schema(options: argparse.Namespace) -> int:
    from engine.commands.schema import print_schema

    return print_schema(options.out, options.table, options.at, as_json=options.as_json)


def _snapshot(options: argparse.Namespace) -> int:
    from engine.commands.snapshot import snapshot_command

    return snapshot_command(resolve(SnapshotSettings, vars(options), os.environ))


def _check(options: argparse.Namespace) -> int:
    from engine.commands.check import check_command

    return check_command(resolve(CheckSettings, vars(options), os.environ))


def _sql(options: argparse.Namespace) -> int:
    settings = resolve(SqlSettings, vars(options), os.environ)
    if settings.output is None:
        start_fork_server()
    from engine.commands.sql import sql_command

    if settings.sources:
        return sql_command(settings, None)
    if options.host is None and options.socket is None:
        raise EngineError("name an output, binlog files, or a server with --host")
    return sql_command(settings, resolve(ConnectionSettings, vars(options), os.environ))


def _vacuum(options: argparse.Namespace) -> int:
    from engine.commands.vacuum import vacuum_command

    return vacuum_command(resolve(VacuumSettings, vars(options), os.environ))


def _consumers(options: argparse.Namespace) -> int:
    from engine.commands.consumers import consumers_command

    return consumers_command(resolve(ConsumersSettings, vars(options), os.environ))


def _compact(options: argparse.Namespace) -> int:
    from engine.commands.compact import compact_command

    return compact_command(resolve(CompactSettings, vars(options), os.environ))


def _verify(options: argparse.Namespace) -> int:
    from engine.commands.verify import verify_command

    return verify_command(resolve(VerifySettings, vars(options), os.environ))


def _mirror(options: argparse.Namespace) -> int:
    from engine.commands.mirror import mirror_command

    return mirror_command(resolve(MirrorSettings, vars(options), os.environ))


def _serve(options: argparse.Namespace) -> int:
    from engine.commands.serve import serve_command

    return serve_command(resolve(ServeSettings, vars(options), os.environ))


def _demo(options: argparse.Namespace) -> int:
    start_fork_server()
    from engine.commands.demo import demo_command

    return demo_command()
