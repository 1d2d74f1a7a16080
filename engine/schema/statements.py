"""The statements that define tables, as plain values: what was written, before any default applies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.schema.changes import TableName


@dataclass(frozen=True, slots=True)
class Default:
    """The value after DEFAULT."""

    kind: Literal["null", "string", "number", "bits", "computed"]
    text: str = ""
    """Content of a string, or a number or literal as written; empty for the other kinds."""


@dataclass(frozen=True, slots=True)
class TypeClause:
    """A column's type as written, with synonyms replaced by the type's own name."""

    name: str
    """In lower case: `int`, `varchar`, `geometrycollection`."""
    lengths: tuple[int, ...] = ()
    """The numbers in parentheses."""
    members: tuple[str, ...] = ()
    """Of ENUM and SET."""
    members_as_bytes: bool = False
    """Some members are hexadecimal literals, whose bytes are in the column's character set."""
    unsigned: bool = False
    zerofill: bool = False
    charset: str | None = None
    """Canonical name (`engine.schema.collations`), or its `DEFAULT`, as everywhere in this module."""
    short_charset: bool = False
    """The character set is written as ASCII or UNICODE."""
    collation: str | None = None
    binary: bool = False
    """The attribute BINARY: the binary collation of the column's character set."""
    compressed: bool = False
    number: bool = False
    """Written as NUMBER, which without lengths is DOUBLE in MariaDB's Oracle mode."""


@dataclass(frozen=True, slots=True)
class ColumnClause:
    """A column as CREATE TABLE and ALTER TABLE declare it."""

    name: str
    type: TypeClause
    nullable: bool | None = None
    """None if neither NULL nor NOT NULL is written."""
    default: Default | None = None
    on_update: bool = False
    auto_increment: bool = False
    primary: bool = False
    unique: bool = False
    visible: bool = True
    generated: Literal["virtual", "stored"] | None = None
    row_version: Literal["start", "end"] | None = None
    """GENERATED ALWAYS AS ROW START or ROW END."""
    versioned: bool = False
    """WITH SYSTEM VERSIONING."""


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of a key; `length`: of its prefix, in characters for text; None for the whole column."""

    column: str
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """A primary or unique key. Others do not change any definition."""

    primary: bool
    parts: tuple[KeyPart, ...]
    hashed: bool = False
    """USING HASH."""
    if_not_exists: bool = False
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Period:
    """PERIOD FOR: the columns of its start and end."""

    of_system: bool
    """PERIOD FOR SYSTEM_TIME."""
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of a table that its definition depends on."""

    charset: str | None = None
    collation: str | None = None
    engine: str | None = None
    """In lower case."""


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE."""

    table: TableName
    columns: tuple[ColumnClause, ...] = ()
    keys: tuple[Key, ...] = ()
    options: TableOptions = TableOptions()
    periods: tuple[Period, ...] = ()
    like: TableName | None = None
    versioned: bool = False
    """WITH SYSTEM VERSIONING."""
    select: bool = False
    """Rows and further columns come from a query."""
    misleading: bool = False
    """A server may have written it in a form that does not show what its columns are."""
    if_not_exists: bool = False
    replace: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD COLUMN. `after`: the column before it, "" for FIRST, None for the last place."""

    column: ColumnClause
    after: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """CHANGE and MODIFY COLUMN. `after` as in `AddColumn`, but None keeps the place."""

    name: str
    column: ColumnClause
    after: str | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN."""

    name: str
    new_name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP COLUMN."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetDefault:
    """ALTER COLUMN … SET DEFAULT, or DROP DEFAULT if there is no default."""

    name: str
    default: Default | None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetVisibility:
    """ALTER COLUMN … SET VISIBLE or INVISIBLE."""

    name: str
    visible: bool


@dataclass(frozen=True, slots=True)
class AddKey:
    """ADD PRIMARY KEY and ADD UNIQUE."""

    key: Key


@dataclass(frozen=True, slots=True)
class DropKey:
    """DROP PRIMARY KEY if there is no name, otherwise DROP INDEX or CONSTRAINT."""

    name: str | None
    if_exists: bool = False

    @property
    def of_primary(self) -> bool:
        """Whether it is the primary key, whose name is PRIMARY."""
        return self.name is None or self.name.upper() == "PRIMARY"


@dataclass(frozen=True, slots=True)
class RenameKey:
    """RENAME INDEX."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    """CONVERT TO CHARACTER SET."""

    charset: str
    collation: str | None


@dataclass(frozen=True, slots=True)
class SetOptions:
    """Table options."""

    options: TableOptions


@dataclass(frozen=True, slots=True)
class RenameTo:
    """RENAME TO."""

    table: TableName


@dataclass(frozen=True, slots=True)
class AddPeriod:
    """ADD PERIOD FOR."""

    period: Period


@dataclass(frozen=True, slots=True)
class DropPeriod:
    """DROP PERIOD FOR, except of the system time."""


@dataclass(frozen=True, slots=True)
class SetVersioning:
    """ADD or DROP SYSTEM VERSIONING."""

    versioned: bool


@dataclass(frozen=True, slots=True)
class LoseRows:
    """A clause that changes or removes rows: DROP PARTITION, TRUNCATE PARTITION, IMPORT TABLESPACE."""


@dataclass(frozen=True, slots=True)
class ExchangePartition:
    """EXCHANGE PARTITION … WITH TABLE."""

    table: TableName


@dataclass(frozen=True, slots=True)
class PartitionToTable:
    """CONVERT PARTITION … TO TABLE."""

    table: TableName


@dataclass(frozen=True, slots=True)
class TableToPartition:
    """CONVERT TABLE … TO PARTITION."""

    table: TableName


Action = (
    AddColumn
    | ChangeColumn
    | RenameColumn
    | DropColumn
    | SetDefault
    | SetVisibility
    | AddKey
    | DropKey
    | RenameKey
    | ConvertCharset
    | SetOptions
    | RenameTo
    | AddPeriod
    | DropPeriod
    | SetVersioning
    | LoseRows
    | ExchangePartition
    | PartitionToTable
    | TableToPartition
)


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE, CREATE INDEX and DROP INDEX; clauses that change neither columns nor rows are left out."""

    table: TableName
    actions: tuple[Action, ...]
    if_exists: bool = False
    ignore: bool = False
    """Rows with duplicate keys are removed, values that do not fit are cut."""


@dataclass(frozen=True, slots=True)
class RenameTables:
    """RENAME TABLE: old and new names, in order."""

    renames: tuple[tuple[TableName, TableName], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTables:
    """DROP TABLE."""

    tables: tuple[TableName, ...]
    if_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE TABLE."""

    table: TableName


@dataclass(frozen=True, slots=True)
class DefineDatabase:
    """CREATE and ALTER DATABASE."""

    database: str
    charset: str | None = None
    collation: str | None = None
    create: bool = False
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """DROP DATABASE."""

    database: str


@dataclass(frozen=True, slots=True)
class Harmless:
    """A statement that changes neither definitions nor, without row events, rows."""


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A statement that may change any table that it mentions."""

    reason: str
    names: frozenset[str]
    """All its words and identifiers, case-folded."""
    databases: bool
    """It may drop or define the databases among `names`."""
    unquoted: bool
    """`names` has words in ASCII only: the statement could not be split."""


Statement = (
    CreateTable
    | AlterTable
    | RenameTables
    | DropTables
    | Truncate
    | DefineDatabase
    | DropDatabase
    | Harmless
    | NotUnderstood
)

_WITH_TABLE = RenameTo | ExchangePartition | PartitionToTable | TableToPartition
"""Clauses of ALTER TABLE that concern another table."""


def named_tables(statement: Statement) -> list[TableName]:
    """The tables that the statement defines, changes, empties or drops by name; none of a whole database."""
    if isinstance(statement, DropTables):
        return list(statement.tables)
    if isinstance(statement, RenameTables):
        return [name for names in statement.renames for name in names]
    if isinstance(statement, AlterTable):
        named = [action.table for action in statement.actions if isinstance(action, _WITH_TABLE)]
        return [statement.table, *named]
    if isinstance(statement, CreateTable | Truncate):
        return [statement.table]
    return []
