"""Delta tables: a commit of rows records how far it goes as a transaction identifier of Delta's log.

Delta takes the identifier from two settings of the session, skips a statement whose number the table has
reached already, and refuses one of two concurrent commits with the same identifier. Column mapping and type
widening are on, so columns can be renamed, dropped and widened without rewriting files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from engine.errors import EngineError
from engine.lakehouse.columns import INTEGERS, precision_and_scale
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
    literal,
    rename_in_catalogue,
    setting,
)
from engine.output.sql_text import quoted_name
from engine.schema.changes import TableName

_PROPERTIES = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
_FEATURES = {"timestamp_ntz": "timestampNtz", "variant": "variantType"}
"""Types that a table can have only with a feature, which CREATE TABLE adds, but ALTER TABLE does not."""
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""The digits before the point that Delta asks of a decimal for an integer type."""


class Delta:
    """The format."""

    name = "delta"
    smallest_integer = "tinyint"
    changelog_names: Mapping[str, str] = {}
    packages: Mapping[str, str] = {"4.2": "io.delta:delta-spark_4.2_2.13:4.4.0"}

    def session_settings(self, template: TargetTemplate) -> Mapping[str, str]:
        """Delta's extension, and few partitions for the state of a log."""
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "2",
        }

    def widens(self, kind: str, wider: str) -> bool:
        """As Delta's type widening documents it."""
        if kind in INTEGERS and wider in INTEGERS:
            return INTEGERS.index(kind) < INTEGERS.index(wider)
        if wider.startswith("decimal"):
            precision, scale = precision_and_scale(wider)
            if kind in INTEGERS:
                return precision - scale >= _DIGITS[kind]
            if kind.startswith("decimal"):
                before, scale_before = precision_and_scale(kind)
                return scale >= scale_before and precision - scale >= before - scale_before
        return (kind, wider) in {
            ("float", "double"),
            ("date", "timestamp_ntz"),
            *((integer, "double") for integer in INTEGERS[:3]),
        }

    def table(self, spark: SparkSession, template: TargetTemplate, name: TableName) -> DeltaTable:
        """The table at the path of the template, or of that name in the catalogue."""
        return DeltaTable(spark, template, name)


class DeltaTable:
    """One Delta table, at a path or in a schema of a catalogue."""

    def __init__(self, spark: SparkSession, template: TargetTemplate, name: TableName) -> None:
        self._spark = spark
        self._template = template
        self._is_in_catalogue = not template.is_path
        self._path = template.path(name) if template.is_path else None
        """None for a table of a catalogue that was not looked up yet."""
        self._parts = ("delta", template.path(name)) if template.is_path else template.parts(name)
        self._sql_name = ".".join(map(quoted_name, self._parts))

    @property
    def sql_name(self) -> str:
        """The table as statements name it."""
        return self._sql_name

    def state(self, known: TargetState | None = None) -> TargetState | None:
        """From the newest snapshot of the table's log."""
        log = self._log()
        # Looks for new versions first: another program may have created the table since the log was read.
        snapshot = None if log is None else self._snapshot(log)
        if snapshot is None or snapshot.version() < 0:
            return None
        if known is not None and snapshot.version() == known.version:
            return known
        text = _value(snapshot.metadata().configuration().get(NOTE_PROPERTY))
        note = Note.from_text(text, self._sql_name)
        fields = StructType.fromJson(json.loads(snapshot.metadata().schemaString())).fields
        columns = tuple(
            TargetColumn(field.metadata["delta.columnMapping.id"], field.name, field.dataType.simpleString())
            for field in fields
        )
        partitions = snapshot.metadata().partitionColumns()
        divided_by = {partitions.apply(index) for index in range(partitions.size())}
        never_empty = [each.name for each in columns if each.name in divided_by and each.kind == "string"]
        seq = max(note.seq, _recorded(snapshot))
        return TargetState(snapshot.version(), seq, note, columns, tuple(never_empty))

    def create(self, columns: Mapping[str, str], note: Note, layout: Layout) -> None:
        """Create the table, and its schema in a catalogue. Raises `EngineError` for a partition by bytes."""
        by_bytes = [name for name in layout.partition_by if columns.get(name.strip("` ")) == "binary"]
        if by_bytes:
            raise EngineError(
                f"Delta cannot store the bytes of {by_bytes[0]} in a column that it partitions by: give "
                "other partitions or --cluster-by"
            )
        self._create(columns, note, layout)

    def copy(self, source: str, note: Note, layout: Layout) -> None:
        """Create the table with the rows of another one, and its schema in a catalogue."""
        self._create(source, note, layout)

    def _create(self, columns: Mapping[str, str] | str, note: Note, layout: Layout) -> None:
        if self._is_in_catalogue:
            create_namespace(self._spark, self._parts)
        properties = {**_PROPERTIES, NOTE_PROPERTY: note.to_text()}
        self._spark.sql(create_statement(self._sql_name, "delta", columns, layout, properties))

    def alter(self, alteration: Alteration) -> None:
        """Change the columns, and before that add the table's feature that a type needs."""
        feature = _FEATURES.get(alteration.kind or "")
        if feature is not None:
            self._set_property(f"delta.feature.{feature}", "supported")
        self._spark.sql(f"ALTER TABLE {self._sql_name} {alteration.statement}")

    def recording(self, seq: int) -> AbstractContextManager[None]:
        """Delta's settings for idempotent writes; a number from 1 on, since Delta skips the others."""
        if not seq:
            return nullcontext()
        return setting(
            self._spark,
            {
                "spark.databricks.delta.write.txnAppId": PROGRESS,
                "spark.databricks.delta.write.txnVersion": str(seq),
            },
        )

    def state_after(self, before: TargetState, seq: int) -> TargetState | None:
        """By the versions, which are dense; a statement that changes nothing may make none."""
        log = self._log()
        version = self._snapshot(log).version()
        if version <= before.version:
            return before
        if version == before.version + 1:
            return replace(before, version=version, seq=seq)
        snapshot = log.getSnapshotAt(version - 1, self._spark._jvm.scala.Option.empty(), False)
        after = self.state()
        is_ours = max(before.note.seq, _recorded(snapshot)) == before.seq
        return after if is_ours and after is not None and after.seq == seq else None

    def empty(self, seq: int) -> None:
        """Remove all files from the table; none is read."""
        with self.recording(seq):
            self._spark.sql(f"DELETE FROM {self._sql_name}")

    def write_note(self, note: Note) -> None:
        """Replace the note."""
        self._set_property(NOTE_PROPERTY, note.to_text())

    def _set_property(self, key: str, value: str) -> None:
        assigned = f"{literal(key)} = {literal(value)}"
        self._spark.sql(f"ALTER TABLE {self._sql_name} SET TBLPROPERTIES ({assigned})")

    def rename(self, new: TableName) -> bool:
        """By the catalogue; a table at a path cannot be renamed."""
        if not self._is_in_catalogue:
            return False
        done = rename_in_catalogue(self._spark, self._parts, self._template.parts(new))
        self._forget()
        return done

    def drop(self) -> None:
        """Remove the folder of the table, or the table from its catalogue."""
        log = self._log()
        if self._is_in_catalogue:
            self._spark.sql(f"DROP TABLE {self._sql_name}")
        else:
            path = log.dataPath()
            path.getFileSystem(log.newDeltaHadoopConf()).delete(path, True)
        self._forget()

    def _forget(self) -> None:
        """Have Delta read logs anew: another table may be in the same folder."""
        if self._is_in_catalogue:
            self._path = None
        self._spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def append(self, rows: DataFrame, seq: int) -> None:
        """Append the rows."""
        writer = rows.write.format("delta").mode("append")
        writer = writer.option("txnAppId", PROGRESS).option("txnVersion", seq)
        if self._is_in_catalogue:
            writer.saveAsTable(self._sql_name)
        else:
            writer.save(self._path)

    def _log(self) -> Any:
        if self._path is None:
            if not self._spark.catalog.tableExists(self._sql_name):
                return None
            self._path = self._spark.sql(f"DESCRIBE DETAIL {self._sql_name}").first()["location"]
        # After a kill the last version may lack a checksum; then Delta needs the session of the thread.
        session = self._spark._jvm.org.apache.spark.sql.classic.SparkSession
        session.setActiveSession(self._spark._jsparkSession)
        logs = self._spark._jvm.org.apache.spark.sql.delta.DeltaLog
        return logs.forTable(self._spark._jsparkSession, self._path)

    def _snapshot(self, log: Any) -> Any:
        nothing = self._spark._jvm.scala.Option.empty()
        return log.update(False, nothing, nothing)


def _recorded(snapshot: Any) -> int:
    """The `_seq` of the last commit of rows."""
    # The version's checksum file has it, unless there are many writers; else Spark reads the whole log.
    checksum = _value(snapshot.checksumOpt())
    known = None if checksum is None else _value(checksum.setTransactions())
    writers = snapshot.setTransactions() if known is None else known
    found = (writers.apply(index) for index in range(writers.size()))
    return max((each.version() for each in found if each.appId() == PROGRESS), default=0)


def _value(option: Any) -> Any:
    """What a Scala Option contains."""
    return option.get() if option.isDefined() else None
