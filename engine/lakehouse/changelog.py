"""Appends all change rows of one table to its target, which is a log of changes and not the table.

Columns are known by name alone: a new or renamed column is added, a dropped one is NULL from then on. The
engine's own columns have other names where the format needs theirs (`Format.changelog_names`).
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import EngineError
from engine.lakehouse.changes import change_rows
from engine.lakehouse.columns import WantedColumn, check_kinds, next_alteration, origins_of
from engine.lakehouse.table_task import Advance, Standing, TableTask
from engine.lakehouse.target import Note, TargetState
from engine.lakehouse.types import kind_of, stored_type
from engine.lakehouse.writer import TargetWriter
from engine.output.change_schema import METADATA_NAMES
from engine.output.reader import merged_schema
from engine.spark.tasks import View


class TableChangelog:
    """The changelog of one table."""

    def __init__(self, task: TableTask) -> None:
        self._task = task
        self._name = task.name
        self._view = task.view
        self._writer = TargetWriter(task.target(), task.view, task.name)

    def advance(self, known: TargetState | None) -> Advance:
        """Append what the target lacks. Raises as `TableMirror.advance`."""
        state = self._writer.begun(known)
        if state is not None and state.note.definition:
            raise EngineError(
                f"{self._writer.target.sql_name} has the table's rows, and change rows cannot be appended to "
                "them: give another target"
            )
        begin = 0 if state is None else state.seq
        files = [file for _, file in self._view.files([self._name], self._view.commit_after(begin))]
        if not files:
            return Advance(None if state is None else self._writer.up_to_now(state))
        if begin + 1 < self._view.first_seq() and state is not None:
            raise EngineError(
                f"change rows of {self._name} were removed from {self._view.out} with the commits before "
                f"{self._view.oldest}, before the target had them: give another target"
            )
        versions = sorted({file.schema_version for file in files})
        keys = [(self._name.database, self._name.table, version) for version in versions]
        schema = merged_schema([self._view.schema(key) for key in keys])
        for index, field in enumerate(schema):
            stored = stored_type(field.type, self._task.format.smallest_integer)
            schema = schema.set(index, field.with_type(stored))
        given = self._task.format.changelog_names
        wanted = [
            WantedColumn(given.get(field.name, field.name), kind_of(field.type), field.name)
            for field in schema
        ]
        if state is None:
            kinds = {column.name: column.kind for column in wanted}
            note = Note(str(self._name), 0, begin)
            self._writer.target.create(kinds, note, self._task.options.layout(self._name))
            state = self._writer.present()
        while True:
            origins = self._origins(state, schema.names)
            check_kinds(state.columns, wanted, origins, self._task.format.widens)
            alteration = next_alteration(
                state.columns, wanted, origins, self._task.format.widens, keeps_dropped=True, is_empty=False
            )
            if alteration is None:
                break
            self._writer.target.alter(alteration)
            state = self._writer.present()
        own = {name: name for name in schema.names if name not in METADATA_NAMES}
        view = View(begin, self._view.last_seq, own, {}, {})
        rows = sum(file.rows for file in files)
        changes = change_rows(
            self._task.spark, self._view.out, files, {file.path: (view,) for file in files}, schema, rows
        )
        changes = changes.withColumnsRenamed(given)
        return Advance(self._writer.appended(state, changes, self._view.last_seq), rows)

    def _origins(self, state: TargetState, names: Sequence[str]) -> dict[str, str | None]:
        """The name in the output of each column, which an older version may have created with that name."""
        given = {new: name for name, new in self._task.format.changelog_names.items()}
        renamed = origins_of(state.columns, list(given))
        return {
            identity: given.get(renamed[identity] or "", name)
            for identity, name in origins_of(state.columns, names).items()
        }

    def standing(self) -> Standing:
        """How far the target is."""
        try:
            state = self._writer.begun(None)
        except EngineError as error:
            return Standing(None, str(error))
        return Standing(None if state is None else self._view.commit_after(state.seq) - 1, None)
