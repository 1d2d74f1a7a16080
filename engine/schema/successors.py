"""The tables that have a table's definition later: itself, whatever its name is then, and its copies.

RENAME TABLE and ALTER TABLE … RENAME give a table another name, CREATE TABLE … LIKE copies its definition.
Tools that alter tables online use both: they alter a copy, give it the name of the table, and drop that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass
from engine.schema.alter_actions import Action, RenameTo
from engine.schema.changes import TableName
from engine.schema.logged_statement import LoggedStatement
from engine.schema.server_settings import ServerSettings
from engine.schema.statements import AlterTable, CreateTable, Harmless, RenameTables

StatementsAbout = Callable[[TableName, BinlogPosition | None], Sequence[LoggedStatement | None]]
"""Returns all statements after a position (None: the first one considered) that may have changed a table, or
made a copy of it, in order; None for one that is not known."""


@dataclass(frozen=True, slots=True)
class Successor:
    """A table whose definition comes from that of another one by statements."""

    table: TableName
    """Its name after them."""
    statements: tuple[LoggedStatement, ...] = ()
    """The statements, in order."""
    clauses: tuple[tuple[Action, ...], ...] = ()
    """For each of them the clauses of ALTER TABLE, without RENAME TO."""

    @property
    def since(self) -> BinlogPosition | None:
        """The position of the last statement; None if there was none."""
        return self.statements[-1].position if self.statements else None

    def after(
        self, statement: LoggedStatement, table: TableName, clauses: tuple[Action, ...] = ()
    ) -> Successor:
        """What it is after one more statement."""
        return Successor(table, (*self.statements, statement), (*self.clauses, clauses))


def successors_of(
    table: TableName, statements_about: StatementsAbout, flavor: str, settings: ServerSettings
) -> Iterator[Successor]:
    """The tables after all statements: itself first, if it is still there, then the copies.

    There is none where a statement has another effect than those named above, or is not known. `settings`: of
    the server.
    """
    waiting = [Successor(table)]
    while waiting:
        found = waiting.pop(0)
        for statement in statements_about(found.table, found.since):
            now, copy = (None, None) if statement is None else _after(statement, found, flavor, settings)
            waiting += [] if copy is None else [copy]
            if now is None:
                break
            if now.table != found.table:
                waiting.insert(0, now)
                break
            found = now
        else:
            yield found


def _after(
    statement: LoggedStatement, found: Successor, flavor: str, settings: ServerSettings
) -> tuple[Successor | None, Successor | None]:
    """The table after a statement, None if it is gone or not certain; and its copy, if that makes one."""
    if statement.query.error_code:
        return None, None
    match statement.parsed(flavor, settings):
        case Harmless():
            return found, None
        case CreateTable(table=copy, like=found.table, temporary=False) if copy != found.table:
            return found.after(statement, found.table), found.after(statement, copy)
        case AlterTable(table=found.table, actions=actions):
            clauses = tuple(action for action in actions if not isinstance(action, RenameTo))
            return found.after(statement, _renamed(found.table, actions), clauses), None
        case RenameTables(renames=renames):
            name = found.table
            for old, new in renames:
                name = new if name == old else name
            return found.after(statement, name), None
        case _:
            return None, None


def _renamed(table: TableName, actions: Sequence[Action]) -> TableName:
    """The name after the clauses of ALTER TABLE."""
    names = [action.table for action in actions if isinstance(action, RenameTo)]
    return names[-1] if names else table
