"""The columns that a target must have for its table's present definition, and the ALTERs that lead there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
from pyspark.sql import SparkSession

from engine.lakehouse.columns import (
    COPIES,
    UnfollowableError,
    WantedColumn,
    check_kinds,
    earlier_names,
    next_alteration,
    origins_of,
)
from engine.lakehouse.lineage import leads_to
from engine.lakehouse.options import MirrorOptions
from engine.lakehouse.statements import fill
from engine.lakehouse.target import Alteration, Format, Note, TargetState
from engine.lakehouse.types import constant, kind_of, stored_type
from engine.lakehouse.writer import TargetWriter
from engine.output.change_schema import own_name
from engine.output.column_types import common_type
from engine.output.schema_state import CommittedChange
from engine.schema.changes import TableName
from engine.spark.definition_types import arrow_type
from engine.spark.table_rows import TableRows


class TargetDefinition:
    """The definition of a table at the end of its `history`, as a target has it."""

    def __init__(
        self,
        table_format: Format,
        options: MirrorOptions,
        name: TableName,
        history: Sequence[CommittedChange],
    ) -> None:
        self._format = table_format
        self._options = options
        self._name = name
        self._history = history
        self._changes = [entry.change.tables[0] for entry in history if entry.change.tables]

    @property
    def is_dropped(self) -> bool:
        """Whether there is no such table any more."""
        return bool(self._changes) and self._changes[-1].columns is None and self._changes[-1].doubt is None

    def is_renamed_away(self, oldest: int) -> bool:
        """Whether there is no such table any more since a commit from `oldest` on gave it another name."""
        if not self.is_dropped:
            return False
        gone = next(entry for entry in reversed(self._history) if entry.change.tables)
        return not gone.change.emptied and gone.commit >= oldest

    def is_of_another_table(self, note: Note) -> bool:
        """Whether the target has the rows of a table that had the name before."""
        return not leads_to(self._history, note)

    def note(self, seq: int, *, counted: bool) -> Note:
        """The note of a target that has these columns."""
        return Note(str(self._name), self._changes[-1].version, seq, counted)

    def columns(self, rows: TableRows, note: Note | None = None) -> list[WantedColumn]:
        """The columns for the definition and the types of `rows`; of a new target without a note.

        Raises `EngineError`.
        """
        definition = rows.eras.definition.columns
        names = [column.name for column in definition]
        origins = None if note is None else earlier_names(self._history, names, note.table, note.definition)
        wanted, types = [], self.types(rows)
        for index, column in enumerate(definition):
            if not column.visible and index not in rows.eras.key:
                continue
            name = rows.names[index]
            if name.lower() == COPIES:
                raise UnfollowableError(
                    f"{self._name} has a column `{column.name}`, a name that targets use themselves"
                )
            kind = kind_of(types[name])
            if column.data_type == "json" and self._options.json == "variant" and rows.eras.key:
                kind = "variant"
            origin = None if origins is None or origins[index] is None else own_name(origins[index] or "")
            value = rows.filled[index] if origin is None else None
            if isinstance(value, timedelta):
                value //= timedelta(microseconds=1)
            filled = None if value is None else constant(value, kind)
            is_certain = origin is None or rows.known_types[index] is not None
            wanted.append(WantedColumn(name, kind, origin, filled, is_certain))
        return wanted

    def types(self, rows: TableRows) -> dict[str, pa.DataType]:
        """The types in which the target stores the columns: of the definition, if it holds all of `rows`."""
        found = {}
        for column, name, newest in zip(rows.eras.definition.columns, rows.names, rows.types, strict=True):
            defined = arrow_type(column)
            wider = defined if common_type(newest, defined) == defined else newest
            found[name] = stored_type(wider, self._format.smallest_integer)
        return found

    def check(self, state: TargetState, rows: TableRows) -> None:
        """Raise `EngineError` if the target's columns cannot become the table's."""
        check_kinds(state.columns, self.columns(rows, state.note), self._origins(state), self._format.widens)

    def _fits(self, state: TargetState, rows: TableRows) -> bool:
        try:
            self.check(state, rows)
        except UnfollowableError:
            return False
        return True

    def altered(
        self, spark: SparkSession, writer: TargetWriter, state: TargetState, rows: TableRows
    ) -> TargetState:
        """The target with the table's columns, and values in new ones. Raises `EngineError`."""
        table = writer.target.sql_name
        origins, wanted = self._origins(state), self.columns(rows, state.note)

        def next_one(*, is_empty: bool) -> Alteration | None:
            return next_alteration(
                state.columns,
                wanted,
                origins,
                self._format.widens,
                keeps_dropped=self._options.dropped_columns == "keep",
                is_empty=is_empty,
            )

        is_current = state.note == self.note(state.note.seq, counted=state.note.counted)
        if is_current and self._fits(state, rows) and next_one(is_empty=False) is None:
            return state
        is_empty = not spark.sql(f"SELECT 1 FROM {table} LIMIT 1").head(1)
        if not is_empty:
            self.check(state, rows)
        while (alteration := next_one(is_empty=is_empty)) is not None:
            if state.note.origins is None:
                writer.target.write_note(replace(state.note, seq=state.seq, origins=origins))
            writer.target.alter(alteration)
            state = writer.present()
        values = {column.name: column.filled for column in wanted if column.filled is not None}
        if values and not is_empty:
            spark.sql(fill(table, values))
        writer.target.write_note(self.note(state.seq, counted=state.note.counted))
        return writer.present()

    def _origins(self, state: TargetState) -> dict[str, str | None]:
        """For each column of the target its name in the definition that it follows."""
        if state.note.origins is not None:
            return state.note.origins
        for table in self._changes:
            if (str(table.name), table.version) == (state.note.table, state.note.definition):
                return origins_of(state.columns, [own_name(column.name) for column in table.columns or ()])
        raise UnfollowableError(f"the output has no definition {state.note.definition} of {self._name}")
