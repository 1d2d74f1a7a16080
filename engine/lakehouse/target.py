"""What a mirror needs of a table in a lakehouse: its names, its state, and the writes that SQL lacks.

The rows of a target and the `_seq` that they reach change in one commit of the format. All else that a mirror
knows about a target is in one table property, the note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Protocol
from urllib.parse import quote

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.output.sql_text import quoted_name
from engine.records import Misfit, from_json, to_json
from engine.schema.changes import TableName

NOTE_PROPERTY = "binlog-engine.mirror"
PROGRESS = "binlog-engine"
"""The name under which a target's commits record the `_seq` that they reach."""

_DATABASE, _TABLE = "{database}", "{table}"


@dataclass(frozen=True, slots=True)
class TargetTemplate:
    """Where the tables are kept: a path, or names in a catalogue, with `{database}` and `{table}` in it."""

    text: str

    def __post_init__(self) -> None:
        if _TABLE not in self.text:
            raise EngineError(
                f"the target `{self.text}` is one place for all tables: give a path such as "
                "/data/lake/{database}/{table}, or a name such as lake.{database}.{table}"
            )

    @property
    def is_path(self) -> bool:
        """Whether it is a path and not a name in a catalogue."""
        return "/" in self.text

    def path(self, name: TableName) -> str:
        """The path of a table."""
        return self.text.replace(_DATABASE, _in_path(name.database)).replace(_TABLE, _in_path(name.table))

    def parts(self, name: TableName) -> tuple[str, ...]:
        """The parts of a table's name in a catalogue."""
        values = {_DATABASE: name.database, _TABLE: name.table}
        return tuple(
            re.sub(r"\{database\}|\{table\}", lambda found: values[found[0]], part)
            for part in self.text.split(".")
        )


def _in_path(name: str) -> str:
    """A name as part of a path: letters, digits, `_`, `$` and `-`, as in the folders of an output."""
    return quote(name, safe="$").replace(".", "%2E").replace("~", "%7E")


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column of a target."""

    identity: int
    """The format's own number of the column, which stays when it is renamed."""
    name: str
    kind: str
    """Its type, as Spark shows it."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a mirror remembers of a target besides its rows."""

    table: str
    """The MySQL table, `database.table`, whose definition the target's columns follow."""
    definition: int
    """The number of that definition (`TableChange.version`); 0 in a changelog."""
    seq: int
    """The target has all rows up to this `_seq`, if no commit of rows records a later one."""
    counted: bool = False
    """Whether the rows are counted, in `_copies`, because the table has no key."""
    origins: dict[str, str | None] | None = None
    """While columns are being altered: of each column, by its identity, the name that it had before; None for
    a column that is not the table's."""

    def to_text(self) -> str:
        """The note as text for a table property."""
        return to_json(self, {}).decode()

    @classmethod
    def from_text(cls, text: str | None, sql_name: str) -> Note:
        """The note of a target's property, None if it has none. Raises `EngineError`."""
        if text is None:
            raise EngineError(
                f"{sql_name} is there already, but binlog-engine did not create it: remove it, or give "
                "another target"
            )
        try:
            return from_json(cls, text.encode())
        except Misfit as error:
            raise EngineError(f"the table property {NOTE_PROPERTY} is damaged: {error}") from None


@dataclass(frozen=True, slots=True)
class TargetState:
    """A target at one of its versions."""

    version: int
    """Delta's version, or Iceberg's snapshot id (-1 without a snapshot)."""
    seq: int
    """The target has all rows up to this `_seq`."""
    note: Note
    columns: tuple[TargetColumn, ...]
    never_empty: tuple[str, ...] = ()
    """Columns in which the format stores empty texts as NULL."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """One change of a target's columns."""

    statement: str
    """The end of ALTER TABLE."""
    kind: str | None = None
    """The type that a column gets, as Spark shows it; None if none gets another one."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a new target stores its rows; both lists are in the format's SQL."""

    partition_by: Sequence[str] = ()
    cluster_by: Sequence[str] = ()


class TargetTable(Protocol):
    """One table of a format, through one session."""

    @property
    def sql_name(self) -> str:
        """The table as statements name it."""

    def state(self, known: TargetState | None = None) -> TargetState | None:
        """The present state; None if there is no such table.

        `known` is an earlier state, which need not be read again if it is still the present one. Raises
        `EngineError` for a table that is not a mirror's, and if it is not known how far it is.
        """

    def create(self, columns: Mapping[str, str], note: Note, layout: Layout) -> None:
        """Create the table, with its types by name."""

    def alter(self, alteration: Alteration) -> None:
        """Change the columns."""

    def recording(self, seq: int) -> AbstractContextManager[None]:
        """Statements inside of it record `seq` in the commits that they make."""

    def state_after(self, before: TargetState, seq: int) -> TargetState | None:
        """The state after a commit to `before` that was to record `seq`.

        Other programs may have changed the layout in between; None if one has changed rows. Raises
        `EngineError` if it is not known any more.
        """

    def empty(self, seq: int) -> None:
        """Remove all rows, and record `seq`."""

    def write_note(self, note: Note) -> None:
        """Replace the note."""

    def copy(self, source: str, note: Note, layout: Layout) -> None:
        """Create the table in one step with the rows of another one, given as SQL."""

    def rename(self, new: TableName) -> bool:
        """Give the table the place of another MySQL table's target, which has none.

        Returns False, with the table as it was, if the catalogue cannot do that.
        """

    def drop(self) -> None:
        """Remove the table with its files."""

    def append(self, rows: object, seq: int) -> None:
        """Append a data frame, and record `seq`."""


class Format(Protocol):
    """A table format."""

    name: str
    smallest_integer: str
    """The type that the format stores the smallest integers in."""
    changelog_names: Mapping[str, str]
    """Columns of change rows → other names in a changelog, since the format has columns of that name."""
    packages: Mapping[str, str]
    """PySpark's version, such as `4.2` → the package that Spark needs."""

    def session_settings(self, template: TargetTemplate) -> Mapping[str, str]:
        """What a local session needs for targets of the template, besides the package."""

    def widens(self, kind: str, wider: str) -> bool:
        """Whether ALTER TABLE can change the type, as Spark shows it."""

    def table(self, spark: SparkSession, template: TargetTemplate, name: TableName) -> TargetTable:
        """The table of that name."""


@contextmanager
def setting(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """A session's settings, which are unset afterwards."""
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in values:
            spark.conf.unset(key)


def create_statement(
    sql_name: str,
    using: str,
    columns: Mapping[str, str] | str,
    layout: Layout,
    properties: Mapping[str, str],
) -> str:
    """The statement that creates a target, with types by name, or as a copy of the table of that SQL name."""
    if isinstance(columns, str):
        declared, query = "", f" AS SELECT * FROM {columns}"
    else:
        listed_columns = ", ".join(f"{quoted_name(name)} {kind}" for name, kind in columns.items())
        declared, query = f" ({listed_columns})", ""
    partitions = f" PARTITIONED BY ({', '.join(layout.partition_by)})" if layout.partition_by else ""
    clusters = f" CLUSTER BY ({', '.join(layout.cluster_by)})" if layout.cluster_by else ""
    listed = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
    return (
        f"CREATE TABLE {sql_name}{declared} USING {using}{partitions}{clusters} "
        f"TBLPROPERTIES ({listed}){query}"
    )


_ONE_AT_A_TIME = Lock()


def create_namespace(spark: SparkSession, parts: Sequence[str]) -> None:
    """Create the namespace of a table, given by the parts of its names, if there is none."""
    if len(parts) > 1:
        # Some catalogues fail if two sessions create the same one.
        with _ONE_AT_A_TIME:
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {'.'.join(map(quoted_name, parts[:-1]))}")


def rename_in_catalogue(spark: SparkSession, parts: Sequence[str], new: Sequence[str]) -> bool:
    """Rename a table, given by the parts of its names; returns False if its catalogue cannot do that."""
    old_name = ".".join(map(quoted_name, parts))
    create_namespace(spark, new)
    # A table stays in its catalogue, so the new name is one inside of it.
    is_catalogue = spark.conf.get(f"spark.sql.catalog.{new[0]}", None) is not None
    inside = new[1:] if is_catalogue else new
    try:
        spark.sql(f"ALTER TABLE {old_name} RENAME TO {'.'.join(map(quoted_name, inside))}")
    except PySparkException:
        if spark.catalog.tableExists(old_name):
            return False
        raise
    return True


def literal(text: str) -> str:
    """A text as a literal of Spark's SQL."""
    return "'{}'".format(text.replace("\\", "\\\\").replace("'", "\\'"))
