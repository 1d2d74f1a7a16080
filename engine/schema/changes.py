"""What one step of the binlog did to table definitions and, without row events, to tables' rows.

These records cross every border: the network process makes them, batches and results carry them to the sink,
the commit log stores them, and readers derive a table's history from them. Each step is one statement, or
something learned without one: a table map, the server's catalog, a schema file.
"""

from __future__ import annotations

from typing import Literal

from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import ColumnDefinition, TableDefinition
from engine.dataclass import dataclass

Source = Literal["statement", "data manipulation", "table map", "server", "schema file", "snapshot"]
"""Where a change comes from. `data manipulation`: INSERT, UPDATE and the like, logged as a statement."""


@dataclass(frozen=True, slots=True)
class TableName:
    """A table, by its names as the binlog's table maps have them."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A unique key of a MariaDB table."""

    name: str
    columns: tuple[str, ...]
    lengths: tuple[int | None, ...]
    """Of each column's prefix, in characters for text; None for the whole column."""
    hashed: bool
    """Declared with USING HASH."""


@dataclass(frozen=True, slots=True)
class TableChange:
    """One table has another definition from here on, or none."""

    name: TableName
    version: int
    """Number of the definition, from 1 for each name; it also counts where a definition ends."""
    columns: tuple[ColumnDefinition, ...] | None = None
    """None after DROP, after a rename to another name, and where the definition is not certain."""
    doubt: str | None = None
    """Why the definition is not certain, in words; None if it is, or if there is no table."""
    renamed_from: TableName | None = None
    """The name that the table, with its rows, had before; None without a rename."""
    previous_names: tuple[str | None, ...] | None = None
    """For each column its name before the change, None for a new column. None if the table is new, or if it
    is not known from which columns these come."""
    filled: tuple[str | None, ...] | None = None
    """For each new column the value, as text, that existing rows got; None for NULL and for other columns.
    None if no column is new, or together with `previous_names`."""
    collation: str | None = None
    """The default collation of new columns; None if not known."""
    engine: str | None = None
    """In lower case; None for InnoDB without being named, or if not known."""
    unique_keys: tuple[UniqueKey, ...] | None = None
    """None if not known."""
    period: tuple[str, str] | None = None
    """MariaDB: the columns of an application-time period, as far as `unique_keys` are known."""
    outside: bool = False
    """The table filter left out the table's rows. The definition is here since the table may be renamed."""

    @property
    def definition(self) -> TableDefinition | None:
        """The certain definition, if there is one."""
        if self.columns is None:
            return None
        return TableDefinition(self.name.database, self.name.table, self.columns, self.collation)


@dataclass(frozen=True, slots=True)
class DatabaseChange:
    """A database has another default collation from here on, or is dropped."""

    database: str
    collation: str | None
    """None if it was dropped, or is not known."""
    complete: bool = False
    """All its tables are known, since it was created or dropped by a statement of the stream."""


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One step: a statement with all that it changed, or what was learned without one."""

    source: Source
    position: BinlogPosition
    """Of the statement's event; without a statement, where the stream was."""
    statement: str | None = None
    """Its beginning, up to `LONGEST_STATEMENT` characters; None without one."""
    tables: tuple[TableChange, ...] = ()
    databases: tuple[DatabaseChange, ...] = ()
    emptied: tuple[TableName, ...] = ()
    """Tables whose rows the statement removed without row events: TRUNCATE, DROP, CREATE OR REPLACE. An empty
    table name stands for all tables of the database. Also a table whose snapshot begins here: the rows from
    before do not count any more."""
    rewritten: tuple[TableName, ...] = ()
    """Tables some of whose rows the statement changed without row events, in a way that the definitions do
    not contain: they are *changed by statement* until a snapshot."""
    rolled_back: str | None = None
    """XID (`engine.binlog.xids`) of the prepared transaction whose rows, if the stream had any, XA ROLLBACK
    undid; None for other statements."""

    @property
    def changes_rows(self) -> bool:
        """Whether rows changed without row events."""
        return bool(self.emptied or self.rewritten or self.rolled_back)


LONGEST_STATEMENT = 1000
