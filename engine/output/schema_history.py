"""What the commit log knows of table definitions: those in force at a commit, and a table's history.

Where `vacuum` has removed old commits, a history begins with what was in force before the oldest one that is
left; each change has its own commit number all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.output.commit_log import CommitLog
from engine.output.files import opening
from engine.output.schema_state import CommittedChange, rewritten_names
from engine.output.storage import OutputPlace, output_place
from engine.schema.changes import SchemaChange, TableName


def stored_schema(out: OutputPlace | str, commit: int) -> tuple[SchemaChange, ...]:
    """The changes in force at `commit`, in order: enough to know every definition; empty for -1.

    Raises `CommitLogError` and `OutputError`.
    """
    with opening(output_place(out)):
        return tuple(entry.change for entry in CommitLog(out).schema_state_at(commit).changes())


def rewritten_tables(out: OutputPlace | str, commit: int) -> dict[TableName, CommittedChange]:
    """For each table that is *changed by statement* at `commit`, the last such statement.

    Raises `CommitLogError` and `OutputError`.
    """
    with opening(output_place(out)):
        return CommitLog(out).schema_state_at(commit).rewritten()


def schema_history(
    out: OutputPlace | str,
    database: str,
    table: str,
    *,
    last_commit: int | None = None,
    follow_renames: bool = False,
) -> list[CommittedChange]:
    """Every change of one table up to `last_commit`, by default the last one, in order.

    Of each change it has the parts about this table: at most one entry in each of `tables`, `emptied` and
    `rewritten`, with the table's own name also where the statement concerned the whole database. With
    `follow_renames`, what comes before a rename is about the table under its earlier name; otherwise the name
    is the same throughout, also where several tables had it one after the other. A statement about a whole
    database is in the history of each name in it, known or not. Raises `CommitLogError` and `OutputError`.
    """
    with opening(output_place(out)):
        log = CommitLog(out)
        last = log.latest_version() if last_commit is None else last_commit
        oldest = log.oldest_version()
        changes = [*log.schema_state_at(oldest - 1).changes(), *log.schema_changes(oldest, last)]
    return table_history(changes, TableName(database, table), follow_renames=follow_renames)


def table_history(
    changes: Sequence[CommittedChange], name: TableName, *, follow_renames: bool = False
) -> list[CommittedChange]:
    """The part of `changes`, which are those of all tables in order, that is about one table.

    As `schema_history` returns it.
    """
    found: list[CommittedChange] = []
    for entry in reversed(changes):
        change = _about(entry.change, name)
        if change is None:
            continue
        found.append(replace(entry, change=change))
        earlier = change.tables[0].renamed_from if change.tables else None
        if follow_renames and earlier is not None:
            name = earlier
    return found[::-1]


def _about(change: SchemaChange, name: TableName) -> SchemaChange | None:
    """The parts of the change that are about one table; None if there are none."""
    tables = tuple(table for table in change.tables if table.name == name)
    whole_database = TableName(name.database, "")
    emptied = (name,) if name in change.emptied or whole_database in change.emptied else ()
    rewritten = (name,) if name in rewritten_names(change) else ()
    if not (tables or emptied or rewritten):
        return None
    return replace(change, tables=tables, databases=(), emptied=emptied, rewritten=rewritten)
