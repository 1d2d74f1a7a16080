"""Which tables' rows a data manipulation statement changes: INSERT, REPLACE, UPDATE, DELETE and LOAD.

A server logs them as statements for sessions with `binlog_format` STATEMENT or MIXED. Only the names of the
tables are read. That a name stands for a view, and what triggers, foreign keys and stored functions change
besides, a statement does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from engine.dataclass import dataclass
from engine.schema.changes import TableName
from engine.schema.statements import ChangeRows, Harmless
from engine.schema.token_reader import TokenReader
from engine.schema.tokens import QUOTED, WORD

_INSERT_MODIFIERS = frozenset(["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE"])
_UPDATE_MODIFIERS = frozenset(["LOW_PRIORITY", "IGNORE"])
_DELETE_MODIFIERS = frozenset(["LOW_PRIORITY", "QUICK", "IGNORE"])
_QUERIES = frozenset(["SELECT", "WITH", "VALUES", "TABLE"])
_JOINS = frozenset(("JOIN", "STRAIGHT_JOIN", ","))
_NO_ALIAS_WORDS = """
    SET WHERE ON USING JOIN STRAIGHT_JOIN INNER CROSS LEFT RIGHT NATURAL OUTER USE FORCE IGNORE PARTITION
    FOR ORDER LIMIT RETURNING FROM
"""
_NO_ALIAS = frozenset(_NO_ALIAS_WORDS.split())
"""Words after a table's name that are not its alias."""
_AFTER_SET = ("WHERE", "ORDER", "LIMIT")
_AFTER_JOIN = ("WHERE", "ORDER", "LIMIT", "RETURNING")


@dataclass(frozen=True, slots=True)
class _Reference:
    """A table in a join, which names of targets and columns refer to by its alias."""

    table: TableName
    alias: str | None

    def is_meant_by(self, qualifier: tuple[str, ...]) -> bool:
        """Whether this is the table that a name of one or two parts, case-folded, refers to."""
        *database, name = qualifier
        if self.alias is not None:
            return not database and name == self.alias.casefold()
        is_database = not database or database[0] == self.table.database.casefold()
        return is_database and name == self.table.table.casefold()


def read_manipulation(reader: TokenReader) -> ChangeRows | Harmless:
    """Read a statement whose first word is one of `MANIPULATIONS`. Raises `UnexpectedTokenError`."""
    return MANIPULATIONS[reader.step().upper](reader)


def _put_rows(reader: TokenReader) -> ChangeRows:
    """After INSERT or REPLACE."""
    _skip_modifiers(reader, _INSERT_MODIFIERS)
    reader.take("INTO")
    return ChangeRows((reader.table(),))


def _load(reader: TokenReader) -> ChangeRows | Harmless:
    if not (reader.take("DATA") or reader.take("XML")):
        return Harmless()
    while not reader.take("INTO", "TABLE"):
        reader.step()
    return ChangeRows((reader.table(),))


def _with(reader: TokenReader) -> ChangeRows | Harmless:
    """Common table expressions are not tables; the statement follows them."""
    reader.take("RECURSIVE")
    expressions: list[TableName] = []
    while reader.upper not in ("UPDATE", "DELETE"):
        if reader.upper == "(":
            reader.skip_parentheses()
        elif reader.upper in _QUERIES:
            return Harmless()
        elif reader.following().upper in ("AS", "(") and reader.upper != "AS":
            expressions.append(reader.table())
        else:
            reader.step()
    changed = read_manipulation(reader)
    if isinstance(changed, Harmless):
        return changed
    others = tuple(table for table in changed.tables if table not in expressions)
    return replace(changed, tables=others or changed.tables)


def _update(reader: TokenReader) -> ChangeRows:
    _skip_modifiers(reader, _UPDATE_MODIFIERS)
    references = _references(reader, "SET")
    reader.expect("SET")
    if len(references) == 1:
        return _changed(references, [()])
    qualifiers = [_assigned(reader)]
    while reader.take(","):
        qualifiers.append(_assigned(reader))
    return _changed(references, qualifiers)


def _assigned(reader: TokenReader) -> tuple[str, ...]:
    """The names before a column's in an assignment, which is stepped over."""
    names = _name_parts(reader)
    reader.expect("=")
    reader.skip_clause(*_AFTER_SET)
    return names[:-1]


def _delete(reader: TokenReader) -> ChangeRows:
    _skip_modifiers(reader, _DELETE_MODIFIERS)
    if reader.session.mariadb and reader.take("HISTORY", "FROM"):
        return ChangeRows((reader.table(),))
    if reader.take("FROM"):
        start = reader.position
        targets = _targets(reader)
        if not reader.take("USING"):
            reader.position = start
            return ChangeRows((reader.table(),))
    else:
        targets = _targets(reader)
        reader.expect("FROM")
    return _changed(_references(reader, *_AFTER_JOIN), targets)


def _targets(reader: TokenReader) -> list[tuple[str, ...]]:
    targets = [_name_parts(reader)]
    while reader.take(","):
        targets.append(_name_parts(reader))
    return targets


def _name_parts(reader: TokenReader) -> tuple[str, ...]:
    """A name with those before it, case-folded; `.*` may follow."""
    reader.take(".")
    names = [reader.name().casefold()]
    while reader.take("."):
        if reader.take("*"):
            break
        names.append(reader.name().casefold())
    return tuple(names)


def _changed(references: Sequence[_Reference], qualifiers: Sequence[tuple[str, ...]]) -> ChangeRows:
    """The tables that the qualifiers refer to; all of them if one is empty, or refers to none."""
    changed: dict[TableName, None] = {}
    for qualifier in qualifiers:
        meant = [each for each in references if qualifier and each.is_meant_by(qualifier)]
        changed |= dict.fromkeys(each.table for each in meant or references)
    return ChangeRows(tuple(changed))


def _references(reader: TokenReader, *until: str) -> list[_Reference]:
    """The tables of a join, up to one of these words; without those of its subqueries.

    Raises `UnexpectedTokenError`, also if there are none.
    """
    found: list[_Reference] = []
    is_expected, depth = True, 0
    while not (reader.at_end or (depth == 0 and reader.upper in until)):
        mark = reader.upper
        if mark == "(":
            if is_expected and reader.following().upper not in _QUERIES:
                reader.step()
                depth += 1
            else:
                reader.skip_parentheses()
                is_expected = False
        elif mark == ")":
            reader.step()
            depth -= 1
        elif mark in _JOINS:
            reader.step()
            is_expected = True
        elif is_expected and mark == "{":
            # `{ OJ a LEFT JOIN b ON … }`
            reader.step()
            reader.take("OJ")
        elif is_expected and reader.following().upper == "(":
            # JSON_TABLE(…), LATERAL (…)
            reader.step()
            reader.skip_parentheses()
            is_expected = False
        elif is_expected:
            found.append(_Reference(reader.table(), _alias(reader)))
            is_expected = False
        elif not _skip_index_hint(reader):
            reader.step()
    if not found:
        raise reader.unexpected("a table")
    return found


def _skip_index_hint(reader: TokenReader) -> bool:
    """USE INDEX FOR JOIN (…), with words that mean something else elsewhere."""
    return (
        reader.take("FOR", "JOIN") or reader.take("FOR", "ORDER", "BY") or reader.take("FOR", "GROUP", "BY")
    )


def _alias(reader: TokenReader) -> str | None:
    if reader.take("PARTITION"):
        reader.skip_parentheses()
    if reader.take("AS"):
        return reader.name()
    is_name = reader.token.kind == QUOTED or (reader.token.kind == WORD and reader.upper not in _NO_ALIAS)
    return reader.name() if is_name else None


def _skip_modifiers(reader: TokenReader, modifiers: frozenset[str]) -> None:
    while reader.take_one_of(modifiers):
        pass


def _analyze(reader: TokenReader) -> ChangeRows | Harmless:
    """MariaDB executes the statement after ANALYZE, and returns its plan."""
    if reader.take("FORMAT", "="):
        reader.step()
    return read_manipulation(reader) if reader.upper in MANIPULATIONS else Harmless()


MANIPULATIONS: Mapping[str, Callable[[TokenReader], ChangeRows | Harmless]] = {
    "INSERT": _put_rows,
    "REPLACE": _put_rows,
    "LOAD": _load,
    "UPDATE": _update,
    "DELETE": _delete,
    "WITH": _with,
    "ANALYZE": _analyze,
}
"""By the first word."""
