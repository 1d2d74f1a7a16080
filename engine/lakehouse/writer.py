"""A target as one mirror writes it: every commit is checked to follow the mirror's own last one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from engine.errors import EngineError
from engine.lakehouse.lineage import leads_to
from engine.lakehouse.target import TargetState, TargetTable
from engine.schema.changes import TableName
from engine.spark.log_view import LogView
from engine.spark.replay import column, only_if

SOURCE = "binlog_engine_changes"
"""The name under which statements find the rows that they merge."""


QUIET_SECONDS = 6 * 3600
"""A target whose table has not changed for this long records that it has all rows up to now."""


class ConflictError(EngineError):
    """Another program changes the target's rows."""


class TargetWriter:
    """The target of one table."""

    def __init__(self, target: TargetTable, view: LogView, name: TableName) -> None:
        self.target = target
        self._view = view
        self._name = name

    def begun(self, known: TargetState | None) -> TargetState | None:
        """The target before anything is written; None if there is none.

        `known` is how this mirror left it. Raises `ConflictError`, and `EngineError` for a target of another
        table or output.
        """
        state = self.target.state(known)
        if known is not None and (state is None or state.seq != known.seq):
            raise self._conflict()
        if state is None:
            return None
        is_of_name = state.note.table == str(self._name)
        if not is_of_name and not leads_to(self._view.history(self._name), state.note):
            raise EngineError(
                f"{self.target.sql_name} is the target of {state.note.table}, not of {self._name}: give a "
                "target in which both names differ"
            )
        if state.seq > self._view.last_seq:
            raise EngineError(
                f"{self.target.sql_name} has rows up to `_seq` {state.seq}, but {self._view.out} ends with "
                f"{self._view.last_seq} there, so they are not of this output or of a later commit: give "
                "another target"
            )
        return state

    def present(self) -> TargetState:
        """The target now, which is there."""
        state = self.target.state()
        if state is None:
            raise self._conflict()
        return state

    def emptied(self, state: TargetState, seq: int) -> TargetState:
        """Without rows if `seq`, at which the table was emptied, is later than the target's."""
        if seq <= state.seq:
            return state
        self.target.empty(seq)
        return self._reached(state, seq)

    def merged(self, state: TargetState, source: DataFrame, statement: str, seq: int) -> TargetState:
        """With `source` merged by a statement that knows it as `SOURCE`."""
        self._storable(state, source).createOrReplaceTempView(SOURCE)
        with self._alone(state), self.target.recording(seq):
            source.sparkSession.sql(statement)
        return self._reached(state, seq)

    def appended(self, state: TargetState, rows: DataFrame, seq: int) -> TargetState:
        """With the rows appended."""
        with self._alone(state):
            self.target.append(self._storable(state, rows), seq)
        return self._reached(state, seq)

    def up_to_now(self, state: TargetState) -> TargetState:
        """A target that has all rows; it records that, if the commits since its last one are old.

        Else they could not be removed, or their absence would look like a loss.
        """
        first = self._view.commit_after(state.seq)
        if first > self._view.last:
            return state
        if self._view.time_us(self._view.last) - self._view.time_us(first) <= QUIET_SECONDS * 1_000_000:
            return state
        self.target.write_note(replace(state.note, seq=self._view.last_seq))
        return self.present()

    def _storable(self, state: TargetState, rows: DataFrame) -> DataFrame:
        """The rows; a query with them fails at a value that the target would not have as it is."""
        for name in state.never_empty:
            rows = only_if(
                rows,
                column(name).isNull() | (F.length(column(name)) > 0),
                f"`{name}` is empty in a row of {self._name}, and Delta stores NULL in its place where it "
                f"partitions by the column: remove {self.target.sql_name}, so that it is made anew, and give "
                "other partitions or --cluster-by",
            )
        return rows

    @contextmanager
    def _alone(self, before: TargetState) -> Iterator[None]:
        """A failure is a conflict if rows have been written meanwhile."""
        try:
            yield
        except Exception as error:
            after = self.target.state()
            if after is None or after.seq != before.seq:
                raise self._conflict() from error
            raise

    def _reached(self, before: TargetState, seq: int) -> TargetState:
        """The target after a commit that was to record `seq`."""
        after = self.target.state_after(before, seq)
        if after is None:
            raise self._conflict()
        return after

    def _conflict(self) -> ConflictError:
        return ConflictError(
            f"another program writes rows to {self.target.sql_name}, probably a second mirror: let one of "
            "them go on, and start this one again only when the other has ended"
        )
