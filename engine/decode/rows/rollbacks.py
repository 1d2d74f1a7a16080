"""Drops rows that were rolled back, but that the server wrote into the binlog.

Servers write a transaction that ends with ROLLBACK, or contains ROLLBACK TO a savepoint, if it made a change
that a rollback does not undo, such as dropping a temporary table (MySQL before 8.0, MariaDB). Its rows are
those of transactional tables and were undone; changes of other tables are in separate transactions. Servers
before 5.5 write both in one transaction, where they cannot be distinguished, so all rows are kept.
Rows that are rolled back after XA PREPARE are in an earlier transaction, and stay: the sink undoes them.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog.event_table import EventTable
from engine.binlog.format_description import FormatDescription, rollback_undoes_rows
from engine.binlog.statements import (
    ROLLBACK,
    ROLLBACK_TO,
    SAVEPOINT,
    XA_ROLLBACK,
    statement_start,
)
from engine.dataclass import dataclass
from engine.decode.arrow.codec import Counters
from engine.decode.rows.event_groups import EventGroups
from engine.decode.rows.query_kinds import query_kinds
from engine.kernels.kernel import Int64s

_NAME = re.compile(rb"(?:ROLLBACK\s+TO|SAVEPOINT)\s+(?:SAVEPOINT\s+)?(.+)", re.IGNORECASE | re.DOTALL)
_QUOTES = ("`", '"')


@dataclass(frozen=True, slots=True)
class _Statement:
    """A SAVEPOINT, ROLLBACK, ROLLBACK TO or XA ROLLBACK statement."""

    event: int
    transaction: int
    kind: int
    name: str
    """The savepoint's name, equal for those that the server does not distinguish; empty without one."""


def drop_rolled_back_rows(
    events: EventTable, groups: EventGroups, description: FormatDescription, counters: Counters
) -> EventGroups:
    """The groups without rolled back rows; counts the rollbacks whose rows stay in earlier batches."""
    statements = _statements(events, groups, description)
    if not statements:
        return groups
    undone = np.zeros(len(groups.rows_events), np.bool_)
    for index, statement in enumerate(statements):
        if statement.kind == XA_ROLLBACK:
            counters.add("xa_rollbacks", 1)
        if statement.kind in (SAVEPOINT, XA_ROLLBACK):
            continue
        since = -1
        if statement.kind == ROLLBACK_TO:
            since = _savepoint(statements[:index], statement)
            counters.add("rollbacks_beyond_batch", since < 0)
        same = groups.rows_transactions == statement.transaction
        undone |= same & (groups.rows_events > since) & (groups.rows_events < statement.event)
    if not undone.any():
        return groups
    kept = ~undone
    return replace(
        groups,
        rows_events=groups.rows_events[kept],
        rows_slots=groups.rows_slots[kept],
        rows_transactions=groups.rows_transactions[kept],
    )


def _statements(events: EventTable, groups: EventGroups, description: FormatDescription) -> list[_Statement]:
    """Rollbacks and savepoints, in binlog order; empty if there is no rollback."""
    if not len(groups.feed_events) or not rollback_undoes_rows(description):
        return []
    queries, kinds = query_kinds(events, groups, description)
    indexes, transactions = groups.feed_events[queries], groups.feed_transactions[queries]
    post_header = description.post_header_length(types.QUERY_EVENT)
    if not _among(kinds, ROLLBACK, ROLLBACK_TO, XA_ROLLBACK).any():
        return []
    found = []
    for i in np.flatnonzero(_among(kinds, ROLLBACK, ROLLBACK_TO, SAVEPOINT, XA_ROLLBACK)):
        index = int(indexes[i])
        start = int(statement_start(events.data, events.starts[index], events.ends[index], post_header))
        name = _NAME.fullmatch(events.data[start : events.ends[index]].tobytes())
        found.append(
            _Statement(index, int(transactions[i]), int(kinds[i]), _plain_name(name[1]) if name else "")
        )
    return found


def _plain_name(written: bytes) -> str:
    """The name without quotes and letter case, which do not count.

    One statement may quote it in another way than the other: MySQL before 8.0 quotes it by the session's
    sql_mode after SAVEPOINT, and always with backticks after ROLLBACK TO, where it does not double them.
    """
    name = written.strip().decode(errors="backslashreplace")
    quote = name[:1]
    if quote in _QUOTES and name.endswith(quote):
        name = name[1:-1].replace(2 * quote, quote)
    return name.casefold()


def _among(kinds: Int64s, *wanted: int) -> NDArray[np.bool_]:
    return np.isin(kinds, wanted)


def _savepoint(before: list[_Statement], rollback: _Statement) -> int:
    """The index of the event that set the savepoint, -1 if it is not in the batch."""
    for statement in reversed(before):
        named = statement.kind == SAVEPOINT and statement.name == rollback.name
        if named and statement.transaction == rollback.transaction:
            return statement.event
    return -1
