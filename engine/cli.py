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

from engine.config.flags import add_flags, refuse_password
from engine.config.resolve import resolve
from engine.config.settings import (
    ConnectionSettings,
    DecodeSettings,
    FileEventsSettings,
    RunSettings,
    ServerEventsSettings,
    ServeSettings,
    VacuumSettings,
)
from engine.errors import EngineError
from engine.pipeline.fork_server import start_fork_server
from engine.pipeline.stop_signals import Terminated, stop_signals_raised

Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    command: Command = options.command
    try:
        with stop_signals_raised():
            return command(options)
    except EngineError as error:
        if options.verbose:
            traceback.print_exc()
        print(f"binlog-engine: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output has closed it; without stdout Python prints no error about that at exit.
        sys.stdout = None  # type: ignore[assignment]
        return 1
    except OSError as error:
        if options.verbose:
            traceback.print_exc()
        what = "a file or socket" if error.filename is None else error.filename
        print(f"binlog-engine: {what} cannot be used: {error.strerror or error}", file=sys.stderr)
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
    decode.add_argument("files", nargs="+", type=Path, metavar="FILE")
    add_flags(decode, DecodeSettings)

    for command in (run, decode):
        command.add_argument("--config", type=Path, help="TOML file with any of these settings")
        command.add_argument("--report", type=Path, help="file for how the run ended, as JSON")

    events = add("events", _events, "show what is in binlog files, or on a server (--host), event by event")
    events.add_argument("files", nargs="*", type=Path, metavar="FILE")
    add_flags(events, ConnectionSettings)
    refuse_password(events)
    events.add_argument(
        "--start", default="earliest", help="where on the server: FILE:POSITION, or a time [earliest]"
    )
    events.add_argument("--json", dest="as_json", action="store_true", help="one JSON object per event")

    status = add("status", _status, "what an output folder contains, and how far it lags its source")
    status.add_argument("out", type=Path, metavar="OUT")
    status.add_argument("--json", dest="as_json", action="store_true", help="one JSON object")

    schema = add("schema", _schema, "the table definitions of an output, and the statements that led to them")
    schema.add_argument("out", type=Path, metavar="OUT")
    schema.add_argument("table", nargs="?", metavar="TABLE", help="database.table, for its history")
    schema.add_argument("--at", metavar="COMMIT|TIME", help="what was in force there instead [last commit]")
    schema.add_argument("--json", dest="as_json", action="store_true", help="one JSON object")

    vacuum = add("vacuum", _vacuum, "remove old commits from an output folder, with their data files")
    vacuum.add_argument("out", type=Path, metavar="OUT")
    vacuum.add_argument(
        "--older-than",
        required=True,
        metavar="AGE",
        help="such as 36h or 30d; removes whole segments of the log, of thousands of commits each",
    )
    vacuum.add_argument("--dry-run", action="store_true", help="only print what would be removed")

    serve = add("serve", _serve, "serve binlog files to any replication client", lasting=True)
    serve.add_argument("files", nargs="+", type=Path, metavar="FILE")
    serve.add_argument("--port", type=int, default=0, help="port on the address; by default any free one")
    serve.add_argument("--address", default="127.0.0.1", help="address to listen on [127.0.0.1]")
    serve.add_argument("--user", default="repl", help="user that clients log in as [repl]")
    serve.add_argument("--password-env", help="environment variable that holds the user's password")
    serve.add_argument("--tls-cert", type=Path, help="server certificate; by default one made for this run")
    serve.add_argument("--tls-key", type=Path, help="file of its key; by default it is in the same file")

    add("demo", _demo, "sample binlogs through the whole engine into a Spark streaming query")
    return parser


def _run(options: argparse.Namespace) -> int:
    # Started first, so that it imports its modules while the command imports its own.
    start_fork_server()
    from engine.commands.run import run_command

    return run_command(resolve(RunSettings, vars(options), os.environ, options.config))


def _decode(options: argparse.Namespace) -> int:
    start_fork_server()
    from engine.commands.decode import decode_command

    return decode_command(resolve(DecodeSettings, vars(options), os.environ, options.config))


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


def _vacuum(options: argparse.Namespace) -> int:
    from engine.commands.vacuum import vacuum_command

    return vacuum_command(resolve(VacuumSettings, vars(options), os.environ))


def _serve(options: argparse.Namespace) -> int:
    from engine.commands.serve import serve_command

    return serve_command(resolve(ServeSettings, vars(options), os.environ))


def _demo(options: argparse.Namespace) -> int:
    start_fork_server()
    from engine.commands.demo import demo_command

    return demo_command()
