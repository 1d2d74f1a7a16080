"""One table as a snapshot reads it: its definition and key now, and the statements that read its chunks.

Everything is read from the server's catalog when the table's turn comes, and again when its definition has
changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Self

from engine.binlog.table_definition import TableDefinition
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.net.client.connection import Connection
from engine.net.client.explained import explained
from engine.net.client.table_columns import ARE_TABLES, ENGINES_WITH_VIEWS, describe_table, describe_tables
from engine.net.protocol.packets import ServerError
from engine.net.protocol.resultset import Row
from engine.output.snapshot_progress import EVERYTHING, Key, KeyRange
from engine.output.sql_text import quoted_name
from engine.schema.changes import TableName
from engine.schema.hidden_columns import HIDDEN_ROW_END, split_hidden
from engine.snapshot.keys import KeyColumn, TableKey
from engine.snapshot.rows.row_format import RowFormat

_SIZES = (
    "SELECT {label}, TABLE_ROWS, AVG_ROW_LENGTH, ENGINE FROM information_schema.TABLES "
    "WHERE TABLE_SCHEMA = {database} AND TABLE_NAME {condition}"
)
_KEY_PARTS = (
    "SELECT {label}, COLUMN_NAME, SUB_PART, COLLATION FROM information_schema.STATISTICS "
    "WHERE TABLE_SCHEMA = {database} AND TABLE_NAME {condition} AND INDEX_NAME = 'PRIMARY' "
    "ORDER BY SEQ_IN_INDEX"
)
_ESTIMATES = f"SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS FROM information_schema.TABLES WHERE {ARE_TABLES}"
_MOST_DATABASES = 1000
"""Databases that one statement names."""
_DICTIONARY_SINCE = (8, 0)
"""MySQL's catalog is tables since then, and looks up several names about as fast as one."""
_LOCK_TIMEOUT = "SET SESSION lock_wait_timeout = {}"
_USUAL_ROW_BYTES = 100
_LARGEST_UNDIVIDED = 128 << 20
"""Bytes of the largest table that is read in one chunk because its key cannot divide it."""


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table of the server."""

    name: TableName
    row_format: RowFormat
    key: TableKey | None
    """None for a table without a primary key, and for one that is small and whose key cannot divide it."""
    key_columns: tuple[str, ...]
    """The names of the primary key's columns; empty without one."""
    compared_columns: tuple[str, ...]
    """By which the stream's change rows are found among a chunk's rows: the primary key's columns, and in a
    table with system versioning the end of the row, since the stream has changes of past rows, too."""
    expected_rows: int
    """The server's estimate."""
    row_bytes: int
    """The server's estimate of the average."""
    has_views: bool
    """Whether a transaction reads the table as it was at one moment."""
    where: str | None
    """A condition that limits the rows."""
    definition: int = 0
    """How many changes of the definition the sink had counted before it was read."""

    @property
    def key_order(self) -> tuple[str, ...]:
        """What the order of each of the key's columns depends on; empty if no chunks are cut."""
        return () if self.key is None else tuple(column.order for column in self.key.columns)

    @classmethod
    def read(cls, connection: Connection, name: TableName, where: str | None) -> Self:
        """From the server's catalog. Raises `EngineError` if the table cannot be read, or is locked now."""
        label = connection.quote(name.table)
        with explained(connection), _short_waits(connection):
            _open_table(connection, name)
        definition = describe_table(connection, name.database, name.table)
        sizes, parts = _sizes_and_key_parts(connection, name.database, label, f"= {label}")
        if definition is None or name.table not in sizes:
            raise EngineError(f"{connection.endpoint} has no table {name}, or this user may not read it")
        return cls._of(connection, name, where, definition, sizes[name.table], parts[name.table])

    @classmethod
    def read_all(
        cls, connection: Connection, tables: Mapping[TableName, str | None]
    ) -> dict[TableName, Self]:
        """Those of many tables, each with its WHERE condition, that can be read at once.

        Tables that are altered at the moment, or cannot be read, are left out. MySQL's catalog is asked for
        all tables of a database together; other servers would read more than the tables of the question.
        """
        greeting = connection.greeting
        if greeting.flavor != "mysql" or greeting.version < _DICTIONARY_SINCE:
            return {}
        by_database: defaultdict[str, list[TableName]] = defaultdict(list)
        with _short_waits(connection):
            for name in tables:
                with suppress(ServerError):
                    _open_table(connection, name)
                    by_database[name.database].append(name)
        found: dict[TableName, Self] = {}
        for database, names in by_database.items():
            definitions = describe_tables(connection, database, [name.table for name in names])
            condition = f"IN ({', '.join(connection.quote(name.table) for name in names)})"
            sizes, parts = _sizes_and_key_parts(connection, database, "TABLE_NAME", condition)
            for name in names:
                with suppress(EngineError, KeyError):
                    definition, size = definitions[name.table], sizes[name.table]
                    found[name] = cls._of(connection, name, tables[name], definition, size, parts[name.table])
        return found

    @classmethod
    def _of(
        cls,
        connection: Connection,
        name: TableName,
        where: str | None,
        definition: TableDefinition,
        size: Row,
        parts: Sequence[Row],
    ) -> Self:
        """`size` and `parts`: of `_SIZES` and `_KEY_PARTS`, without the table's name."""
        greeting = connection.greeting
        with explained(connection):
            rows, length, engine = size
            row_bytes = int(length or 0) or _USUAL_ROW_BYTES
            expected = int(rows or 0)
        if where is not None and not parts:
            raise EngineError(
                f"{name} has no primary key, by which the rows that fulfil a condition would replace those "
                "from before: request it without --where"
            )
        divides = _divides(definition, parts)
        if parts and not divides and expected * row_bytes > _LARGEST_UNDIVIDED:
            raise EngineError(
                f"the primary key of {name} has only the beginning of a column, or a CHAR column with a "
                "NOPAD collation of MariaDB, by which a table of this size cannot be read in parts"
            )
        key_columns = tuple(column or "" for column, _, _ in parts)
        _, hidden = split_hidden(definition.columns)
        ends = (column.name for column in hidden if column.name == HIDDEN_ROW_END)
        return cls(
            name=name,
            row_format=RowFormat.of(definition, greeting.flavor, greeting.version),
            key=_table_key(definition, parts) if parts and divides else None,
            key_columns=key_columns,
            compared_columns=(*key_columns, *ends) if key_columns else (),
            expected_rows=expected,
            row_bytes=row_bytes,
            has_views=(engine or "").lower() in ENGINES_WITH_VIEWS,
            where=where,
        )

    @property
    def quoted(self) -> str:
        """The table's name in SQL."""
        return _quoted(self.name)

    def select(self, keys: KeyRange = EVERYTHING) -> str:
        """The statement that reads the rows with these keys, in the order of the key."""
        columns = ", ".join(self.row_format.select_list)
        return f"SELECT {columns} FROM {self.quoted}{self._tail(keys)}"

    def key_in(self, connection: Connection, keys: KeyRange, count: int) -> Key | None:
        """The key of row number `count` in a range; None if it does not have so many rows."""
        assert self.key is not None
        tail = self._tail(keys)
        with explained(connection):
            rows = connection.query(
                f"SELECT {self.key.shown} FROM {self.quoted}{tail} LIMIT 1 OFFSET {count - 1}"
            )
            return self.key.key_of(rows[0]) if rows else None

    def _tail(self, keys: KeyRange) -> str:
        if self.key is None:
            return "" if self.where is None else f" WHERE ({self.where})"
        conditions = [self.key.condition(keys), "" if self.where is None else f"({self.where})"]
        given = " AND ".join(filter(None, conditions))
        return f" FORCE INDEX (PRIMARY){f' WHERE {given}' if given else ''} ORDER BY {self.key.order}"


def have_estimates_of_now(connection: Connection) -> None:
    """Have MySQL estimate rows and their size when it is asked, and not once a day. Raises `Refusal`."""
    greeting = connection.greeting
    if greeting.flavor == "mysql" and greeting.version >= _DICTIONARY_SINCE:
        with explained(connection):
            connection.execute("SET SESSION information_schema_stats_expiry = 0")


def expected_rows(connection: Connection, databases: Collection[str]) -> dict[TableName, int]:
    """The server's estimates of the number of rows of the tables in these databases. Raises `Refusal`.

    If these are very many, of all tables that the user sees: each estimate takes the server some work.
    """
    have_estimates_of_now(connection)
    names = ", ".join(map(connection.quote, databases))
    condition = f" AND TABLE_SCHEMA IN ({names})" if 0 < len(databases) <= _MOST_DATABASES else ""
    with explained(connection):
        rows = connection.query(_ESTIMATES + condition)
        return {TableName(database or "", table or ""): int(count or 0) for database, table, count in rows}


@contextmanager
def _short_waits(connection: Connection) -> Iterator[None]:
    """A table that others have locked is refused after a second: tables that are not need not wait for it."""
    connection.execute(_LOCK_TIMEOUT.format(1))
    try:
        yield
    finally:
        if connection.is_open:
            connection.execute(_LOCK_TIMEOUT.format("DEFAULT"))


def _open_table(connection: Connection, name: TableName) -> None:
    """Wait for a statement that changes the table: the stream may have it already.

    The server refuses it if the user may not read every column: the catalog shows only the others.
    """
    connection.execute(f"SELECT * FROM {_quoted(name)} LIMIT 0")


def _sizes_and_key_parts(
    connection: Connection, database: str, label: str, condition: str
) -> tuple[dict[str, Row], Mapping[str, list[Row]]]:
    """By table. `label`: the SQL expression that returns its name; `condition`: on the name."""
    given = {"label": label, "database": connection.quote(database), "condition": condition}
    with explained(connection):
        sizes = {table or "": tuple(size) for table, *size in connection.query(_SIZES.format(**given))}
        parts: defaultdict[str, list[Row]] = defaultdict(list)
        for table, *part in connection.query(_KEY_PARTS.format(**given)):
            parts[table or ""].append(tuple(part))
    return sizes, parts


def _divides(definition: TableDefinition, parts: Sequence[Row]) -> bool:
    """Whether the order of the primary key's index is that in which the server compares whole values.

    MariaDB's indexes contain the padding of CHAR columns, which its NOPAD collations then compare, too: a
    value with a character below the space after it comes before the value alone in the index, and after it in
    WHERE.
    """
    of_key = {name for name, _, _ in parts}
    return not any(prefix for _, prefix, _ in parts) and not any(
        column.name in of_key and column.data_type == "char" and "_nopad_" in (column.collation or "")
        for column in definition.columns
    )


def _table_key(definition: TableDefinition, parts: Sequence[Row]) -> TableKey:
    columns = {column.name: column for column in definition.columns}
    return TableKey(
        tuple(KeyColumn.of(columns[name or ""], descending=order == "D") for name, _, order in parts)
    )


def _quoted(name: TableName) -> str:
    return f"{quoted_name(name.database)}.{quoted_name(name.table)}"
