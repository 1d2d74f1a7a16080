"""The `binlog-engine` command line: parses the arguments and calls one function per command.

Each command's modules are imported only when it runs (`engine.commands.dispatch`), so that `--help` is fast.
Errors of the user or the environment are printed as one sentence on standard error, with exit code 1, and
with a traceback only for -v.
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.commands import dispatch
from engine.config.flags import add_flags, refuse_password
from engine.config.output_place import output_place
from engine.config.setting_groups import ConnectionSettings
from engine.config.settings import (
    CheckSettings,
    CompactSettings,
    CompareSettings,
    DecodeSettings,
    FleetSettings,
    MirrorSettings,
    RunSettings,
    SnapshotSettings,
    SqlSettings,
)
from engine.errors import EngineError, os_error_sentence, printable
from engine.pipeline.stop_signals import Terminated, stop_signals_raised

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
            if "log_format" not in options:
                dispatch.warn_of_variables()
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

    run = add("run", dispatch.run, "follow a server into an output folder", lasting=True)
    add_flags(run, RunSettings)
    refuse_password(run)

    decode = add("decode", dispatch.decode, "decode local binlog files into an output folder", lasting=True)
    decode.add_argument("files", nargs="+", type=Path, metavar="FILE", help=_FILES)
    add_flags(decode, DecodeSettings)

    for command in (run, decode):
        command.add_argument("--config", type=Path, help="TOML file with any of these settings")
        command.add_argument("--report", type=Path, help="file for how the run ended, as JSON")

    fleet = add("fleet", dispatch.fleet, "follow many servers, as a file lists them", lasting=True)
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

    events = add(
        "events", dispatch.events, "show what is in binlog files, or on a server (--host), event by event"
    )
    events.add_argument("files", nargs="*", type=Path, metavar="FILE", help=_FILES)
    add_flags(events, ConnectionSettings)
    refuse_password(events)
    events.add_argument(
        "--start",
        default="earliest",
        help="first event of the server: FILE:POSITION, gtid:SET, or a time [earliest]",
    )
    events.add_argument("--json", dest="as_json", action="store_true", help="one JSON object per event")

    status = add("status", dispatch.status, "what an output contains, and its lag")
    status.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    status.add_argument("--json", dest="as_json", action="store_true", help="one JSON object")

    schema = add(
        "schema", dispatch.schema, "the table definitions of an output, and the statements that led to them"
    )
    schema.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    schema.add_argument("table", nargs="?", metavar="TABLE", help="database.table, for its history")
    schema.add_argument(
        "--at",
        metavar="COMMIT|TIME",
        help="definitions at this commit or time, not at the last commit, nor a table's history",
    )
    schema.add_argument("--json", dest="as_json", action="store_true", help="one JSON object")

    snapshot = add("snapshot", dispatch.snapshot, "have the engine read the rows that tables have now")
    snapshot.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    add_flags(snapshot, SnapshotSettings)

    compare = add("compare", dispatch.compare, "compare the rows of an output with those of its server")
    compare.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    add_flags(compare, CompareSettings)

    check = add("check", dispatch.check, "what a server, an output and Spark lack before a run")
    add_flags(check, CheckSettings)
    refuse_password(check)
    check.add_argument("--json", dest="as_json", action="store_true", help="one JSON object")

    sql = add("sql", dispatch.sql, "changes as SQL statements that make them again, or undo them")
    sql.add_argument(
        "sources", nargs="*", type=output_place, metavar="OUT|FILE", help=f"{_OUTPUT}; or {_FILES}"
    )
    add_flags(sql, SqlSettings)
    add_flags(sql, ConnectionSettings)
    refuse_password(sql)

    vacuum = add("vacuum", dispatch.vacuum, "remove old commits from an output, with their data files")
    vacuum.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    vacuum.add_argument(
        "--retain",
        "--older-than",
        required=True,
        metavar="AGE|SIZE",
        help="what to keep, such as 30d or 500GB; removes segments of the log, of a thousand commits each",
    )
    vacuum.add_argument("--dry-run", action="store_true", help="only print what would be removed")

    consumers = add("consumers", dispatch.consumers, "the consumers of an output, and how far each has read")
    consumers.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    consumers.add_argument("--remove", metavar="NAME", help="remove a consumer: no commit is kept for it")

    compact = add("compact", dispatch.compact, "merge the small files of old commits into large ones")
    compact.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    add_flags(compact, CompactSettings)

    verify = add("verify", dispatch.verify, "compare every file of an output with its commit log")
    verify.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)

    mirror = add(
        "mirror", dispatch.mirror, "keep the tables of an output as Delta or Iceberg tables", lasting=True
    )
    mirror.add_argument("out", type=output_place, metavar="OUT", help=_OUTPUT)
    add_flags(mirror, MirrorSettings)

    serve = add("serve", dispatch.serve, "serve binlog files to any replication client", lasting=True)
    serve.add_argument("files", nargs="+", type=Path, metavar="FILE", help=_FILES)
    serve.add_argument("--port", type=int, default=0, help="port to listen on [any free one]")
    serve.add_argument("--address", default="127.0.0.1", help="address to listen on [127.0.0.1]")
    serve.add_argument("--user", default="repl", help="user that clients log in as [repl]")
    serve.add_argument("--password-env", help="environment variable that holds the password [empty password]")
    serve.add_argument("--tls-cert", type=Path, help="server certificate; by default one made for this run")
    serve.add_argument("--tls-key", type=Path, help="file of its key; by default it is in the same file")

    add("demo", dispatch.demo, "sample binlogs through the whole engine into a Spark streaming query")
    return parser
