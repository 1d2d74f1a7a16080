"""Iceberg tables: a commit of rows records how far it goes in the summary of its snapshot.

Iceberg takes the entry from a setting of the session. Snapshots of other programs, such as compaction, do not
have it, so the newest ancestor that has it counts. What Spark's SQL has no way to do goes through Iceberg's
own Java classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from engine.errors import EngineError
from engine.lakehouse.columns import precision_and_scale
from engine.lakehouse.target import (
    NOTE_PROPERTY,
    PROGRESS,
    Alteration,
    Layout,
    Note,
    TargetColumn,
    TargetState,
    TargetTemplate,
    create_namespace,
    create_statement,
    rename_in_catalogue,
    setting,
)
from engine.output.sql_text import quoted_name
from engine.schema.changes import TableName

LOCAL_CATALOG = "lake"
"""The catalogue of a local session whose target is a path."""

_SUMMARY_KEY = f"{PROGRESS}.seq"
_PROPERTIES = {
    # Version 3 has VARIANT, and deletion vectors for merge-on-read.
    "format-version": "3",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}


class Iceberg:
    """The format."""

    name = "iceberg"
    smallest_integer = "int"
    changelog_names: Mapping[str, str] = {"_file": "_binlog_file", "_pos": "_binlog_pos"}
    packages: Mapping[str, str] = {"4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"}

    def session_settings(self, template: TargetTemplate) -> Mapping[str, str]:
        """Iceberg's extension; for a path a catalogue that keeps its tables there."""
        settings = {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        }
        if template.is_path:
            catalog = f"spark.sql.catalog.{LOCAL_CATALOG}"
            settings |= {
                catalog: "org.apache.iceberg.spark.SparkCatalog",
                f"{catalog}.type": "hadoop",
                f"{catalog}.warehouse": _warehouse(template),
                # The sessions of a mirror see each other's tables at once.
                f"{catalog}.cache-enabled": "false",
            }
        return settings

    def widens(self, kind: str, wider: str) -> bool:
        """As Iceberg's specification lists the promotions of types."""
        if kind.startswith("decimal") and wider.startswith("decimal"):
            (before, scale_before), (precision, scale) = map(precision_and_scale, (kind, wider))
            return scale == scale_before and precision > before
        return (kind, wider) in {("int", "bigint"), ("float", "double")}

    def table(self, spark: SparkSession, template: TargetTemplate, name: TableName) -> IcebergTable:
        """The table of that name in the catalogue."""
        if template.is_path:
            _warehouse(template)
            template = _IN_LOCAL_CATALOG
        return IcebergTable(spark, template, name)


def _warehouse(template: TargetTemplate) -> str:
    """The folder of the catalogue whose tables have the template's paths. Raises `EngineError`."""
    warehouse, tail = template.text[: -len(_TAIL)], template.text[-len(_TAIL) :]
    if tail != _TAIL:
        raise EngineError(
            f"the Iceberg target `{template.text}` is a path that does not end with {_TAIL}: end it so, or "
            "give names in a catalogue, such as lake.{database}.{table}"
        )
    return warehouse


_TAIL = "/{database}/{table}"
_IN_LOCAL_CATALOG = TargetTemplate(f"{LOCAL_CATALOG}.{{database}}.{{table}}")


class IcebergTable:
    """One Iceberg table."""

    def __init__(self, spark: SparkSession, names: TargetTemplate, name: TableName) -> None:
        """`names` are those in a catalogue."""
        self._spark = spark
        self._names = names
        self._parts = names.parts(name)
        self._sql_name = ".".join(map(quoted_name, self._parts))

    @property
    def sql_name(self) -> str:
        """The table as statements name it."""
        return self._sql_name

    def state(self, known: TargetState | None = None) -> TargetState | None:
        """From the newest metadata of the table."""
        catalog = self._spark.catalog
        if not catalog.tableExists(self._sql_name):
            return None
        # The catalogue's cache may have a table that was removed and made anew.
        catalog.refreshTable(self._sql_name)
        if not catalog.tableExists(self._sql_name):
            return None
        table = self._table()
        text = table.properties().get(NOTE_PROPERTY)
        note = Note.from_text(text, self._sql_name)
        schema = self._spark.table(self._sql_name).schema
        kinds = {field.name: field.dataType.simpleString() for field in schema}
        columns = tuple(
            TargetColumn(column.fieldId(), column.name(), kinds[column.name()])
            for column in table.schema().columns()
        )
        snapshot = table.currentSnapshot()
        seq = max(note.seq, self._recorded(table, snapshot))
        return TargetState(-1 if snapshot is None else snapshot.snapshotId(), seq, note, columns)

    def create(self, columns: Mapping[str, str], note: Note, layout: Layout) -> None:
        """Create the table, and its namespace."""
        self._create(columns, note, layout)

    def copy(self, source: str, note: Note, layout: Layout) -> None:
        """Create the table with the rows of another one, and its namespace."""
        self._create(source, note, layout)

    def _create(self, columns: Mapping[str, str] | str, note: Note, layout: Layout) -> None:
        if layout.cluster_by:
            raise EngineError("Iceberg tables are not clustered: give their partitions")
        create_namespace(self._spark, self._parts)
        properties = {**_PROPERTIES, NOTE_PROPERTY: note.to_text()}
        self._spark.sql(create_statement(self._sql_name, "iceberg", columns, layout, properties))

    def alter(self, alteration: Alteration) -> None:
        """Change the columns."""
        self._spark.sql(f"ALTER TABLE {self._sql_name} {alteration.statement}")

    def recording(self, seq: int) -> AbstractContextManager[None]:
        """Iceberg's setting for an entry in the summaries of new snapshots."""
        return setting(self._spark, {f"spark.sql.iceberg.snapshot-property.{_SUMMARY_KEY}": str(seq)})

    def state_after(self, before: TargetState, seq: int) -> TargetState | None:
        """By the snapshot's parent; a statement that changes nothing may make no snapshot."""
        after = self.state()
        if after is None or after.version == before.version:
            return after
        table = self._table()
        parent = table.snapshot(after.version).parentId()
        if parent is not None and parent != before.version:
            earlier = max(before.note.seq, self._recorded(table, table.snapshot(parent)))
        else:
            earlier = before.seq
        return after if earlier == before.seq and after.seq == seq else None

    def empty(self, seq: int) -> None:
        """Remove all files from the table; none is read."""
        everything = self._spark._jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()
        removal = self._table().newDelete().deleteFromRowFilter(everything)
        removal.set(_SUMMARY_KEY, str(seq)).commit()

    def write_note(self, note: Note) -> None:
        """Replace the note."""
        self._table().updateProperties().set(NOTE_PROPERTY, note.to_text()).commit()

    def rename(self, new: TableName) -> bool:
        """By the catalogue, if it is not one of folders; the files stay where they are."""
        return rename_in_catalogue(self._spark, self._parts, self._names.parts(new))

    def drop(self) -> None:
        """Remove the table from its catalogue, with its files."""
        self._spark.sql(f"DROP TABLE {self._sql_name} PURGE")

    def append(self, rows: DataFrame, seq: int) -> None:
        """Append the rows."""
        writer = rows.writeTo(self._sql_name)
        writer.option(f"snapshot-property.{_SUMMARY_KEY}", str(seq)).append()

    def _table(self) -> Any:
        """The table as Iceberg's Java class, up to date, also for the next statement of the session."""
        classes = self._spark._jvm.org.apache.iceberg.spark.Spark3Util
        table = classes.loadIcebergTable(self._spark._jsparkSession, self._sql_name)
        table.refresh()
        return table

    def _recorded(self, table: Any, snapshot: Any) -> int:
        """The `_seq` of the newest snapshot that records one. Raises `EngineError` if it has expired."""
        while snapshot is not None:
            seq = snapshot.summary().get(_SUMMARY_KEY)
            if seq is not None:
                return int(seq)
            parent = snapshot.parentId()
            if parent is None:
                break
            snapshot = table.snapshot(parent)
            if snapshot is None:
                raise EngineError(
                    f"it is not known which rows {self._sql_name} has: the snapshot of the mirror's last "
                    "commit has expired, and others are newer; remove the table, so that it is made anew"
                )
        return 0
