"""Writes output folders the way the engine does, for the tests of readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from engine.binlog.position import SourcePosition
from engine.output.change_schema import EVENT_FEED_SCHEMA, METADATA_FIELDS
from engine.output.checksum import checksum_of
from engine.output.commit import Commit, DataFile, SchemaVersion
from engine.output.commit_log import CommitLog
from engine.output.data_file_names import PART_ALIGNMENT, Part, pack_path
from engine.output.files import table_folder
from engine.output.prepared import PreparedTransaction, UndoneTransaction
from engine.output.schema_state import LoggedChange
from engine.output.snapshot_progress import NO_CHANGE
from engine.schema.changes import SchemaChange

GTID_SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
FIRST_COMMIT_US = 1_700_000_000_000_000
SECOND_US = 1_000_000

EVENTS = "."
"""The name of the events feed, where others are `database.table`."""


@dataclass(frozen=True)
class Change:
    """One change row: its type, its values by column, and the columns that its image lacks."""

    change_type: str
    values: Mapping[str, Any]
    absent: Sequence[str] | None = None


def insert(**values: Any) -> Change:
    return Change("insert", values)


def delete(**values: Any) -> Change:
    return Change("delete", values)


def update(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    return [Change("update_preimage", before), Change("update_postimage", after)]


class Output:
    """An output folder that grows by calls of `commit`; commit `n` is one second after commit `n - 1`.

    With `packed`, the data files of a commit are parts of one pack.
    """

    def __init__(self, path: Path, flavor: str = "mysql", *, packed: bool = False) -> None:
        self.path = path
        self._packed = packed
        self._flavor = flavor
        self.log = CommitLog(path)
        self.seq = 0
        self.snapshots = NO_CHANGE
        """What is new of snapshots with the next commit."""
        self.prepared: tuple[PreparedTransaction, ...] = ()
        """What the next commits list as prepared."""
        self.undone: tuple[UndoneTransaction, ...] = ()
        """What the next commit lists as undone."""
        self._schema_changes: list[LoggedChange] = []
        self._versions: dict[tuple[str, str], list[pa.Schema]] = {("", ""): [EVENT_FEED_SCHEMA]}
        self._unlogged: list[SchemaVersion] = [_schema_version("", "", 1, EVENT_FEED_SCHEMA)]

    def table(self, name: str, columns: pa.Schema) -> None:
        """From the next commit on the table (`database.table`) has these columns."""
        database, table = name.split(".")
        schema = pa.schema(
            [*columns, *METADATA_FIELDS], {"database": database, "table": table, "primary_key": '["id"]'}
        )
        versions = self._versions.setdefault((database, table), [])
        versions.append(schema)
        self._unlogged.append(_schema_version(database, table, len(versions), schema))

    def change_schema(self, change: SchemaChange, seq: int | None = None) -> None:
        """With the next commit; it takes effect after `seq`, by default after the rows so far."""
        self._schema_changes.append(LoggedChange(self.seq if seq is None else seq, change))

    def commit(
        self,
        changes: Mapping[str, Sequence[Change]],
        batch_rows: int = 1 << 20,
        counters: Mapping[str, int] | None = None,
    ) -> int:
        """Commit one data file per table; returns the commit's number."""
        files = []
        number = self.log.latest_version() + 1
        for index, (name, rows) in enumerate(changes.items()):
            database, table = name.split(".")
            schema = self._versions[database, table][-1]
            batches = [
                self._batch(schema, rows[start : start + batch_rows], number)
                for start in range(0, len(rows), batch_rows)
            ]
            files.append(self._write(database, table, f"{number:020d}-{index}.arrow", batches, number))
        return self.commit_files(self._pack(files, number) if self._packed else files, counters)

    def _pack(self, files: Sequence[DataFile], number: int) -> list[DataFile]:
        """The files as parts of a pack, which takes their place."""
        content, entries = bytearray(), []
        for file in files:
            content += bytes(-len(content) % PART_ALIGNMENT)
            part = Part(pack_path(number, 0, 0), len(content), file.bytes)
            path = self.path / file.path
            entries.append(replace(file, path=part.path, checksum=checksum_of(path).text()))
            content += path.read_bytes()
            path.unlink()
        pack = self.path / pack_path(number, 0, 0)
        pack.parent.mkdir(exist_ok=True)
        pack.write_bytes(content)
        return entries

    def commit_files(self, files: Sequence[DataFile], counters: Mapping[str, int] | None = None) -> int:
        """Commit files that are in place already."""
        number = self.log.latest_version() + 1
        self.log.append(
            Commit(
                version=number,
                time_us=FIRST_COMMIT_US + number * SECOND_US,
                files=tuple(files),
                schemas=tuple(self._unlogged),
                position=SourcePosition("binlog.000001", 4, None, "", self._flavor),
                last_seq=self.seq,
                source_timestamp=FIRST_COMMIT_US // SECOND_US,
                counters=dict(counters or {}),
                schema_changes=tuple(self._schema_changes),
                snapshots=self.snapshots,
                prepared=self.prepared,
                undone=self.undone,
            )
        )
        self._unlogged = []
        self._schema_changes = []
        self.snapshots = NO_CHANGE
        self.undone = ()
        return number

    def _batch(self, schema: pa.Schema, rows: Sequence[Change], number: int) -> pa.RecordBatch:
        seqs = list(range(self.seq + 1, self.seq + 1 + len(rows)))
        self.seq += len(rows)
        shared: dict[str, list[Any]] = {
            "_change_type": [row.change_type for row in rows],
            "_commit_timestamp": [FIRST_COMMIT_US + number * SECOND_US] * len(rows),
            "_seq": seqs,
            "_gtid": [f"{GTID_SOURCE}:{number}"] * len(rows),
            "_file": ["binlog.000001"] * len(rows),
            "_pos": [100 * seq for seq in seqs],
            "_absent_columns": [row.absent for row in rows],
        }
        return pa.RecordBatch.from_arrays(
            [
                encoded(shared.get(field.name) or [row.values.get(field.name) for row in rows], field.type)
                for field in schema
            ],
            schema=schema,
        )

    def _write(
        self, database: str, table: str, name: str, batches: Sequence[pa.RecordBatch], number: int
    ) -> DataFile:
        folder = table_folder(database, table)
        path = self.path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with pa.ipc.new_file(path, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        seqs = [batch.column("_seq") for batch in batches]
        return DataFile(
            path=f"{folder}/{name}",
            database=database,
            table=table,
            schema_version=len(self._versions[database, table]),
            rows=sum(batch.num_rows for batch in batches),
            bytes=path.stat().st_size,
            first_seq=seqs[0][0].as_py(),
            last_seq=seqs[-1][-1].as_py(),
            min_timestamp_us=FIRST_COMMIT_US + number * SECOND_US,
            max_timestamp_us=FIRST_COMMIT_US + number * SECOND_US,
        )


def _schema_version(database: str, table: str, version: int, schema: pa.Schema) -> SchemaVersion:
    return SchemaVersion(database, table, version, schema.serialize().to_pybytes())


def encoded(values: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    """Values as an array of the type; run-end encoded with a run per change of value."""
    if not pa.types.is_run_end_encoded(data_type):
        if pa.types.is_dictionary(data_type):
            return pa.array(values, data_type.value_type).dictionary_encode().cast(data_type)
        return pa.array(values, data_type)
    last = len(values)
    ends = [end for end in range(1, last + 1) if end == last or values[end] != values[end - 1]]
    runs = pa.array([values[end - 1] for end in ends], data_type.value_type)
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), runs)
