"""Brings one target up to a commit: emptied, altered and merged, in this order, as the log says.

The range goes from the `_seq` that the target's own commits record to that of the commit. All its rows are
read with the table's columns at its end, so the target is altered once, before them, and gets one MERGE; only
where the primary key changed, one for each key. Every step may be repeated after a crash: a MERGE and the
removal of rows record how far the target is, an alteration follows from the target's state.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from engine.errors import EngineError
from engine.lakehouse.changes import (
    RangeFacts,
    change_rows,
    counted_rows,
    newest_rows,
    newest_values,
    range_facts,
)
from engine.lakehouse.columns import COPIES, SEQ, UnfollowableError
from engine.lakehouse.definition import TargetDefinition
from engine.lakehouse.statements import fill, merge_counts, merge_rows
from engine.lakehouse.table_task import Advance, Standing, TableTask
from engine.lakehouse.target import Alteration, TargetState
from engine.lakehouse.writer import SOURCE, TargetWriter
from engine.output.sql_text import quoted_name
from engine.spark.replay import without_absent
from engine.spark.table_rows import Phase, TableRows


class TableMirror:
    """The mirror of one table."""

    def __init__(self, task: TableTask) -> None:
        self._spark = task.spark
        self._options = task.options
        self._view = task.view
        self._name = task.name
        self._writer = TargetWriter(task.target(), task.view, task.name)
        self._definition = TargetDefinition(
            task.format, task.options, task.name, task.view.history(task.name)
        )

    def advance(self, known: TargetState | None) -> Advance:
        """Bring the target up to the view's last commit.

        `known` is how this mirror left it. Raises `ConflictError`, and `EngineError` if the table must be
        set aside.
        """
        state = self._writer.begun(known)
        if state is not None and self._definition.is_renamed_away(self._view.oldest):
            # No table of the mirror has got the target (`renames`).
            self._writer.target.drop()
            state = None
        if self._definition.is_dropped:
            return Advance(None if state is None else self._writer.emptied(state, self._view.last_seq))
        if state is not None and not state.note.definition:
            raise EngineError(
                f"{self._writer.target.sql_name} has change rows, not the table's: give another target"
            )
        is_foreign = state is not None and self._definition.is_of_another_table(state.note)
        rows = self._rows_since(0 if state is None or is_foreign else state.seq)
        if is_foreign:
            self._writer.target.drop()
            state = None
        facts = range_facts(self._view.out, *rows.files(0), rows.generated_names)
        phases = [phase for phase in rows.phases() if phase.until > rows.after]
        if state is None:
            state = self._created(rows, phases)
        else:
            state = self._writer.emptied(state, rows.after)
            state = self._definition.altered(self._spark, self._writer, state, rows)
        for phase in phases if facts.rows else ():
            state = self._merged(state, rows, phase, facts, is_only=len(phases) == 1)
        if not facts.rows:
            state = self._writer.up_to_now(state)
        return Advance(state, facts.rows)

    def standing(self) -> Standing:
        """How far the target is, and whether it can follow; nothing is written."""
        commit = None
        try:
            state = self._writer.begun(None)
            if state is None or self._definition.is_dropped:
                return Standing(None, None)
            commit = self._view.commit_after(state.seq) - 1
            if not self._definition.is_of_another_table(state.note):
                rows = self._rows_since(state.seq)
                if rows.after == state.seq:
                    self._definition.check(state, rows)
        except EngineError as error:
            return Standing(commit, str(error))
        return Standing(commit, None)

    def _rows_since(self, seq: int) -> TableRows:
        """The rows that lead from the target to the table. Raises `EngineError`."""
        rows = TableRows.since_emptied(self._view, self._name, seq)
        rows.check_complete(allow_rewritten=self._options.allow_rewritten)
        return rows

    def _created(self, rows: TableRows, phases: Sequence[Phase]) -> TargetState:
        is_counted = not (phases[0].keys if phases else rows.eras.key)
        kinds = {column.name: column.kind for column in self._definition.columns(rows)} | {SEQ: "bigint"}
        if is_counted:
            kinds[COPIES] = "bigint"
        note = self._definition.note(rows.after, counted=is_counted)
        self._writer.target.create(kinds, note, self._options.layout(self._name))
        return self._writer.present()

    def _merged(
        self, state: TargetState, rows: TableRows, phase: Phase, facts: RangeFacts, *, is_only: bool
    ) -> TargetState:
        """With the rows of a phase."""
        columns = self._definition.columns(rows)
        names = [column.name for column in columns]
        state = self._represented(state, phase, names)
        schema = self._read_schema(rows, names, with_absent=facts.partial)
        changes = change_rows(self._spark, self._view.out, *rows.files(0), schema, facts.rows)
        changes = changes.where("_change_type != 'truncate'")
        if not is_only:
            changes = changes.where(f"{SEQ} > {phase.after} AND {SEQ} <= {phase.until}")
        table = self._writer.target.sql_name
        if not phase.keys:
            statement = merge_counts(table, SOURCE, names, generated=rows.generated_names)
            counted = counted_rows(changes, names, rows.generated_names)
            return self._writer.merged(state, counted, statement, phase.until)
        statement = merge_rows(
            table,
            SOURCE,
            phase.keys,
            names,
            may_be_null={column.name for column in columns if column.kind.startswith(("date", "timestamp"))},
            variants={column.name for column in columns if column.kind == "variant"},
            partial=facts.partial,
        )
        if facts.partial:
            complete = without_absent(changes, rows.generated_names.difference(phase.keys))
            newest = newest_values(complete, phase.keys, names)
        else:
            newest = newest_rows(changes, phase.keys, names)
        return self._writer.merged(state, newest, statement, phase.until)

    def _represented(self, state: TargetState, phase: Phase, names: Sequence[str]) -> TargetState:
        """With or without the numbers of equal rows, as the phase's key demands."""
        is_counted = not phase.keys
        if state.note.counted == is_counted:
            return state
        table = self._writer.target.sql_name
        has_numbers = any(column.name == COPIES for column in state.columns)
        if is_counted:
            self._check_none(
                f"(SELECT 1 FROM {table} GROUP BY {', '.join(map(quoted_name, names))} HAVING COUNT(*) > 1)",
                f"{self._name} has lost its key, and its target has rows that differ only in dropped "
                "columns: remove the target, so that it is made anew",
            )
            if not has_numbers:
                self._writer.target.alter(Alteration(f"ADD COLUMNS ({COPIES} BIGINT)"))
            self._spark.sql(fill(table, {COPIES: "1"}))
        elif has_numbers:
            self._check_none(
                f"{table} WHERE {COPIES} <> 1",
                f"{self._name} has a key now, but its target has equal rows: the output lacks the table's "
                "first rows, so take a snapshot of the table",
            )
            self._writer.target.alter(Alteration(f"DROP COLUMN {COPIES}"))
        self._writer.target.write_note(self._definition.note(state.seq, counted=is_counted))
        return self._writer.present()

    def _check_none(self, rows: str, sentence: str) -> None:
        """Raise `UnfollowableError` if there are such rows."""
        if self._spark.sql(f"SELECT 1 FROM {rows} LIMIT 1").head(1):
            raise UnfollowableError(sentence)

    def _read_schema(self, rows: TableRows, names: Sequence[str], *, with_absent: bool) -> pa.Schema:
        """The columns to read, in the types that the target stores."""
        types = self._definition.types(rows)
        fields = [pa.field(name, types[name]) for name in names]
        fields += [pa.field("_change_type", pa.string()), pa.field(SEQ, pa.int64())]
        if with_absent:
            fields.append(pa.field("_absent_columns", pa.list_(pa.string())))
        return pa.schema(fields)
