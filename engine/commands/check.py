"""The `check` command: examines a server, an output folder and Spark, and says what must change before a run.

Each kind of finding has its module in `engine.doctor`. Only the list of binlogs needs a privilege; without it
the rest is examined all the same.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial

from engine.binlog.position import SourcePosition
from engine.commands.addresses import addresses_of
from engine.config.credentials import read_login
from engine.config.output_place import OutputPlace
from engine.config.server_address import ServerAddress
from engine.config.settings import CheckSettings
from engine.config.table_filter import TableFilter
from engine.doctor.connection import account, check_connection, failed_connection, quote_as_usual
from engine.doctor.finding import Finding
from engine.doctor.output import check_output
from engine.doctor.prepared import ListedTransaction, check_listed, read_listed
from engine.doctor.privileges import check_privileges, read_grants
from engine.doctor.retention import check_headroom, check_retention
from engine.doctor.settings import check_settings, read_variables
from engine.doctor.spark import check_spark
from engine.doctor.tables import check_tables, read_tables
from engine.errors import EngineError, printable
from engine.net.client.connect import connect
from engine.net.client.connection import Connection
from engine.net.client.server_events import file_begun
from engine.net.client.server_queries import binary_logs, has_prepared
from engine.net.client.source_facts import SourceFacts, read_facts
from engine.net.client.xa_recover import prepared_xids
from engine.output.folder import open_output

_LABELS = {"ok": "ok", "advice": "advice", "required": "MUST CHANGE"}


def check_command(settings: CheckSettings) -> int:
    """Print the findings; returns 1 if something must change. Raises `EngineError`."""
    login = read_login(settings.connection, os.environ, interactive=sys.stdin.isatty())
    wanted = TableFilter(settings.tables, settings.exclude_tables)
    position, listed = (None, ()) if settings.out is None else _last_commit(settings.out)
    findings: dict[str, list[Finding]] = {}
    for address in addresses_of(settings.connection, login):
        findings[str(address.unix_socket or f"{address.host}:{address.port}")] = list(
            examine_server(address, wanted, position, listed)
        )
    if settings.out is not None:
        findings["output"] = list(check_output(settings.out))
    if settings.spark:
        findings["spark"] = list(check_spark())
    print(printable(_json(findings) if settings.as_json else "\n".join(_table(findings))))
    return int(any(finding.level == "required" for part in findings.values() for finding in part))


def examine_server(
    address: ServerAddress,
    wanted: TableFilter,
    position: SourcePosition | None,
    listed: Sequence[ListedTransaction] = (),
) -> Iterator[Finding]:
    """The findings about one server; `position`: where an output ends, if it has commits.

    `listed`: the XA transactions that are prepared there.
    """
    try:
        connection = connect(address)
    except EngineError as error:
        yield failed_connection(error)
        return
    with connection:
        yield from check_connection(connection, address)
        quote_as_usual(connection)
        facts, variables = read_facts(connection), read_variables(connection)
        yield from check_settings(variables)
        tables = read_tables(connection, wanted)
        grants, prepares = read_grants(connection), has_prepared(connection)
        yield from check_privileges(grants, facts, tables, account(connection), prepares=prepares)
        yield from check_tables(tables, facts, variables)
        if facts.log_bin:
            yield from _asked("binlogs", partial(_binlogs, address, connection, facts, variables, position))
        if listed:
            yield from _asked("XA RECOVER", lambda: check_listed(listed, prepared_xids(connection)))


def _binlogs(
    address: ServerAddress,
    connection: Connection,
    facts: SourceFacts,
    variables: dict[str, str],
    position: SourcePosition | None,
) -> Iterator[Finding]:
    files = binary_logs(connection)
    yield from check_retention(variables, files, partial(file_begun, partial(connect, address), facts))
    if position is not None:
        yield from check_headroom(position, facts, files)


def _asked(what: str, questions: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """The findings, up to the question that the server refuses."""
    try:
        yield from questions()
    except EngineError as error:
        yield Finding(what, "not known", "advice", "known", str(error), "grant what the reason names")


def _last_commit(out: OutputPlace) -> tuple[SourcePosition | None, tuple[ListedTransaction, ...]]:
    """Where an output ends, and the XA transactions that are prepared there."""
    try:
        return open_output(out).position, read_listed(out)
    except EngineError:
        # `check_output` reports it.
        return None, ()


def _json(findings: dict[str, list[Finding]]) -> str:
    parts = {name: [asdict(finding) for finding in part] for name, part in findings.items()}
    return json.dumps(parts, ensure_ascii=False, indent=2)


def _table(findings: dict[str, list[Finding]]) -> Iterator[str]:
    """Lines for people: what must change comes first."""
    order = tuple(_LABELS)[::-1]
    for name, part in findings.items():
        yield name
        width = max((len(finding.what) for finding in part), default=0)
        for finding in sorted(part, key=lambda finding: order.index(finding.level)):
            yield f"  {_LABELS[finding.level]:<11}  {finding.what:<{width}}  {finding.actual}"
            if finding.level != "ok":
                indent = " " * (17 + width)
                yield f"{indent}should be: {finding.expected}"
                yield f"{indent}because: {finding.why}"
                yield f"{indent}change: {finding.remedy}"
