"""The `schema` command: the table definitions of an output, and how they came to be.

Everything is read from the commit log, without a lock; no engine has to run.
"""

from __future__ import annotations

import json

from engine.commands.schema_reports import ListedTable, Report, TableAt, TableHistory, TableList
from engine.config.output_place import OutputPlace, output_place
from engine.errors import EngineError, printable
from engine.output.commit_log import CommitLog
from engine.output.commit_times import last_commit_until, parse_time_us
from engine.output.files import opening
from engine.output.folder import open_output
from engine.output.schema_history import rewritten_tables, schema_history
from engine.output.table_names import find_table
from engine.schema.changes import TableName


def print_schema(
    out: OutputPlace | str, table: str | None = None, at: str | None = None, as_json: bool = False
) -> int:
    """Print all tables, the history of one, or its definition `at` a commit or time; returns the exit code.

    Raises `EngineError` if there is no output, no such table or no such commit.
    """
    report = schema_report(output_place(out), table, at)
    text = json.dumps(report.values(), indent=2, ensure_ascii=False) if as_json else report.text()
    print(printable(text))
    return 0


def schema_report(out: OutputPlace, table: str | None, at: str | None) -> Report:
    """What the command prints. Raises as `print_schema` does."""
    if open_output(out).is_new:
        raise EngineError(f"there is no commit in {out}: give the folder that `binlog-engine run` writes to")
    with opening(out):
        log = CommitLog(out)
        commit = log.latest_version() if at is None else _commit_at(log, at)
        time_us = log.read(commit).time_us
        if table is None:
            return TableList(commit, time_us, _tables(log, commit))
        name = find_table(log, commit, table)
    if at is None:
        return TableHistory(name, schema_history(out, name.database, name.table, follow_renames=True))
    for listed in _tables(log, commit):
        if listed.name == name:
            return TableAt(commit, time_us, listed)
    raise EngineError(f"there is no definition of {name} at commit {commit}: it was dropped, or never known")


def _tables(log: CommitLog, commit: int) -> list[ListedTable]:
    """The tables that exist at the commit, in alphabetical order."""
    rewritten = rewritten_tables(log.out, commit)
    newest: dict[TableName, ListedTable] = {}
    for entry in log.schema_state_at(commit).changes():
        for table in entry.change.tables:
            newest[table.name] = ListedTable(table, entry, rewritten.get(table.name))
    return [newest[name] for name in sorted(newest, key=str) if newest[name].exists]


def _commit_at(log: CommitLog, at: str) -> int:
    """The number of a commit that is in the log, given by its number or a time."""
    oldest, latest = log.oldest_version(), log.latest_version()
    if at.isascii() and at.isdigit():
        if not oldest <= int(at) <= latest:
            raise EngineError(
                f"there is no commit {at} in {log.out}: it has the commits {oldest} to {latest}"
            )
        return int(at)
    try:
        commit = last_commit_until(log, parse_time_us(at))
    except ValueError as error:
        raise EngineError(f"`--at` is `{at}`, but it takes the number of a commit, or {error}") from None
    if commit < oldest:
        raise EngineError(f"`--at` is `{at}`, which is before the first commit in {log.out}")
    return commit
