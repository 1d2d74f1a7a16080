"""The clauses of ALTER TABLE as plain values: as written, before any default.

Clauses that change neither columns nor rows are left out.
"""

from __future__ import annotations

from engine.dataclass import dataclass
from engine.schema.changes import TableName
from engine.schema.declarations import ColumnClause, Default, Key, Period, TableOptions


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
