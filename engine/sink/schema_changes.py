"""The schema changes of the next commit, each with the `_seq` at which it takes effect.

They are collected with the rows: those of an open transaction are kept apart until it ends, and dropped with
it. A statement that is the last event of its batch takes effect after the batch's rows. What was learned
takes effect before them, and so does any other statement: it creates a table, of which there were no rows,
or it is data manipulation, which counts for the whole batch. Of the latter, those that mark no further table
are left out: there may be thousands in a second.
"""

from __future__ import annotations

from engine.errors import EngineError
from engine.output.schema_state import LoggedChange
from engine.pipeline.messages import Result
from engine.schema.changes import SchemaChange, TableName


class SchemaChanges:
    """Those of kept transactions, and of the open one."""

    def __init__(self) -> None:
        self._kept: list[LoggedChange] = []
        self._open: list[LoggedChange] = []
        self._manipulated: set[TableName] = set()
        """Tables that these, or commits of this run, mark as changed by data manipulation."""

    def __bool__(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self._kept)

    def add(self, changes: tuple[SchemaChange, ...], seq: int) -> None:
        """Changes that take effect after this `_seq`."""
        self._open += [LoggedChange(seq, change) for change in changes if self._says_more(change)]

    def keep(self) -> None:
        """A transaction has ended."""
        self._kept += self._open
        self._open.clear()

    def drop(self) -> None:
        """Drop the open transaction's."""
        self._open.clear()
        self._manipulated.clear()

    def abort(self, seq: int) -> None:
        """Drop the open transaction's, but for data manipulation, which takes effect after this `_seq`.

        A transaction that is rolled back, or that ends with its server, has all the same changed tables of
        storage engines without transactions.
        """
        marks = [logged.change for logged in self._open if logged.change.source == "data manipulation"]
        self.drop()
        self._kept += [LoggedChange(seq, mark) for mark in marks]

    def seal(self) -> tuple[LoggedChange, ...]:
        """Those to commit, which are not kept here any longer."""
        sealed = tuple(self._kept)
        self._kept.clear()
        return sealed

    def _says_more(self, change: SchemaChange) -> bool:
        """Whether a change is to be in the log; notes which tables are marked after it."""
        if change.source == "data manipulation":
            is_known = self._manipulated.issuperset(change.rewritten)
            self._manipulated.update(change.rewritten)
            return not is_known
        if change.emptied or change.tables:
            # Marks end, or move to other names.
            self._manipulated.clear()
        return True


def divided(result: Result) -> tuple[tuple[SchemaChange, ...], tuple[SchemaChange, ...]]:
    """The batch's changes that take effect before its rows, and those that do after them.

    Raises `EngineError` if a statement that empties tables is not the batch's last event.
    """
    changes = result.status.schema_changes
    statements = [number for number, change in enumerate(changes) if change.source == "statement"]
    first_after = len(changes) if result.statement is None else statements[-1]
    before, after = changes[:first_after], changes[first_after:]
    for change in before:
        if change.emptied:
            raise EngineError(
                f"the statement at {change.position} empties tables and is not the last event of batch "
                f"{result.sequence}: this is a bug, please report it"
            )
    return before, after
