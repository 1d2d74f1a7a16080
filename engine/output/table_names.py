"""Finds a table of an output by the name that a user gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from engine.config.table_filter import TableFilter
from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.schema.changes import TableName

_SHOWN = 20
"""Names in a message."""


def known_tables(log: CommitLog, commit: int) -> list[TableName]:
    """Every table that has rows up to `commit`, or that a filter did not leave out, in alphabetical order.

    Raises `CommitLogError`.
    """
    summary = log.summary_at(commit)
    with_rows = {TableName(*key) for key in summary.totals if key != ("", "")}
    changes = (entry.change for entry in log.schema_state_at(commit).changes())
    defined = {table.name for change in changes for table in change.tables if not table.outside}
    return sorted(with_rows | defined, key=str)


def find_table(log: CommitLog, commit: int, given: str) -> TableName:
    """The table `database.table`. Raises `EngineError` if there is none, with the most similar name."""
    names = known_tables(log, commit)
    for name in names:
        if str(name) == given:
            return name
    instead = _instead(given, names)
    for name in names:
        if fnmatchcase(str(name), given):
            instead = f"give the name of one table, such as {name}, not a pattern"
            break
    raise EngineError(f"there is no table {given} in {log.out} up to commit {commit}: {instead}")


def require_matches(log: CommitLog, commit: int, patterns: Sequence[str]) -> None:
    """Raise `EngineError` if a pattern of `--tables` matches no table that the output has had.

    A table that only statements without row events changed is not known, but it may be wanted.
    """
    changes = log.schema_state_at(commit).changes()
    rewritten = {name for entry in changes for name in entry.change.rewritten}
    names = sorted({*known_tables(log, commit), *rewritten}, key=str)
    tables = [(name.database, name.table) for name in names]
    for pattern in patterns:
        for missed in TableFilter((pattern,)).unmatched(tables):
            raise EngineError(
                f"no table in {log.out} matches {missed} up to commit {commit}: {_instead(pattern, names)}"
            )


def _instead(given: str, names: Iterable[TableName]) -> str:
    shown = [str(name) for name in names]
    # Names of other case are near, too.
    folded = {name.lower(): name for name in shown}
    for near in get_close_matches(given.lower(), folded, n=1):
        return f"did you mean {folded[near]}?"
    return f"it has {', '.join(shown[:_SHOWN]) + (' and more' if len(shown) > _SHOWN else '') or 'none'}"
