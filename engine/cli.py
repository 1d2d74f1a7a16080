"""The `binlog-engine` command: arguments in, one function call per command, an exit code out.

What users did wrong, or what went wrong around them, is one sentence on standard error and exit code 1; a
traceback only with -v.
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from engine.config import settings as config
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
        # Whoever read our output has seen enough; Python must not complain about it when it closes stdout.
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
        """Add a command; stopping a `lasting` one is a good end."""
        command = commands.add_parser(name, help=text, description=text, parents=[verbose])
        command.set_defaults(command=function, lasting=lasting)
        return command

    run = add("run", _run, "follow a server into an output folder", lasting=True)
    config.add_settings(run, (*config.CONNECTION, *config.PIPELINE, *config.START))
    config.refuse_password(run)
    run.add_argument("--config", type=Path, help="TOML file with any of these settings")

    decode = add("decode", _decode, "decode local binlog files into an output folder", lasting=True)
    decode.add_argument("files", nargs="+", type=Path, metavar="FILE")
    config.add_settings(decode, config.PIPELINE)
    decode.add_argument("--config", type=Path, help="TOML file with any of these settings")

    events = add("events", _events, "show what is in binlog files, or on a server (--host), event by event")
    events.add_argument("files", nargs="*", type=Path, metavar="FILE")
    config.add_settings(events, config.CONNECTION)
    config.refuse_password(events)
    events.add_argument(
        "--start", default="earliest", help="where on the server: FILE:POSITION, or a time [earliest]"
    )
    events.add_argument("--json", action="store_true", help="one JSON object per event")

    status = add("status", _status, "what an output folder holds, and how far behind it is")
    status.add_argument("out", type=Path, metavar="OUT")
    status.add_argument("--json", action="store_true", help="one JSON object")

    vacuum = add("vacuum", _vacuum, "remove old commits from an output folder, with their data files")
    vacuum.add_argument("out", type=Path, metavar="OUT")
    vacuum.add_argument(
        "--older-than", required=True, metavar="AGE", help="such as 36h or 30d; goes by thousands of commits"
    )
    vacuum.add_argument("--dry-run", action="store_true", help="only say what would be removed")

    serve = add("serve", _serve, "serve binlog files to any replication client", lasting=True)
    serve.add_argument("files", nargs="+", type=Path, metavar="FILE")
    serve.add_argument("--port", type=int, default=0, help="port on the address; by default any free one")
    serve.add_argument("--address", default="127.0.0.1", help="address to listen on [127.0.0.1]")
    serve.add_argument("--user", default="repl", help="user that clients log in as [repl]")
    serve.add_argument("--password-env", default=None, help="environment variable that holds its password")
    serve.add_argument("--tls-cert", type=Path, help="certificate to show; by default one made just for this")
    serve.add_argument("--tls-key", type=Path, help="file of its key; by default it is in the same file")

    for command in (run, decode):
        command.add_argument("--report", type=Path, help="file for how the run ended, as JSON")

    add("demo", _demo, "sample binlogs through the whole engine into a Spark streaming query")
    return parser


def _run(options: argparse.Namespace) -> int:
    start_fork_server()
    from engine.commands.runs import run_server
    from engine.config.credentials import read_login

    settings = (*config.CONNECTION, *config.PIPELINE, *config.START)
    values = config.resolve(settings, vars(options), config.environment(), options.config)
    config.require(values, "user", "out")
    login = read_login(values, config.environment(), interactive=sys.stdin.isatty())
    return _with_display(options, lambda display: run_server(values, login, display))


def _decode(options: argparse.Namespace) -> int:
    start_fork_server()
    from engine.commands.runs import decode_files

    values = config.resolve(config.PIPELINE, vars(options), config.environment(), options.config)
    config.require(values, "out")
    return _with_display(options, lambda display: decode_files(values, options.files, display))


def _with_display(options: argparse.Namespace, work: Callable[[Any], Any]) -> int:
    from engine.commands.progress import Display, require_writable, summary, write_report

    if options.report is not None:
        require_writable(options.report)
    display = Display()
    try:
        outcome = work(display)
    finally:
        display.close()
    print(summary(outcome, verbose=options.verbose), file=sys.stderr)
    if options.report is not None:
        write_report(outcome, options.report)
    if outcome.error is None:
        return 0
    if options.verbose and outcome.traceback:
        print(outcome.traceback, file=sys.stderr)
    raise EngineError(outcome.error)


def _events(options: argparse.Namespace) -> int:
    from engine.commands.events import show_events, show_server_events
    from engine.config.credentials import read_login
    from engine.config.server_address import ServerAddress
    from engine.net.client.connect import connect

    if options.files:
        show_events(options.files, as_json=options.json, output=sys.stdout)
        return 0
    if options.host is None and options.socket is None:
        raise EngineError("name the binlog files to show, or a server with --host")
    values = config.resolve(config.CONNECTION, vars(options), config.environment(), None)
    config.require(values, "user")
    login = read_login(values, config.environment(), interactive=sys.stdin.isatty())
    address = ServerAddress(values["host"], values["port"], login, values["socket"])
    show_server_events(
        partial(connect, address),
        server_id=values["server_id"],
        start=options.start,
        as_json=options.json,
        output=sys.stdout,
    )
    return 0


def _status(options: argparse.Namespace) -> int:
    from engine.commands.status import print_status

    return print_status(options.out, as_json=options.json)


def _vacuum(options: argparse.Namespace) -> int:
    from engine.commands.vacuum import print_vacuum

    return print_vacuum(options.out, options.older_than, dry_run=options.dry_run)


def _serve(options: argparse.Namespace) -> int:
    from engine.net.archive_server.server import run_server
    from engine.net.archive_server.server_tls import ServerTls

    password = ""
    if options.password_env is not None:
        if options.password_env not in config.environment():
            raise EngineError(f"the environment variable {options.password_env} is not set")
        password = config.environment()[options.password_env]
    tls = ServerTls.load(options.tls_cert, options.tls_key) if options.tls_cert else ServerTls.make()
    run_server(options.files, options.address, options.port, options.user, password, tls)
    return 0


def _demo(options: argparse.Namespace) -> int:
    start_fork_server()
    from engine.commands.demo import run_demo

    return run_demo()
