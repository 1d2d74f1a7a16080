"""Gives targets the places of their tables' present names, before a round writes any rows.

Which table a target is of follows from its note (`lineage`), which a move keeps. So a mirror that was killed
finds out anew which targets are in their places, and moves the others. A catalogue renames a target; one at a
path is copied in one step and then removed. A target whose place is that of another one waits until that has
moved; where each waits for another one (a swap), one goes aside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from pyspark.sql import SparkSession

from engine.dataclass import dataclass
from engine.lakehouse.failures import FAILURES, sentence
from engine.lakehouse.lineage import earlier_table_names, leads_to
from engine.lakehouse.options import MirrorOptions
from engine.lakehouse.target import Format, TargetState, TargetTable, TargetTemplate
from engine.schema.changes import TableName
from engine.spark.log_view import LogView

_ASIDE = "__binlog_engine_moving"
"""What a target's name ends with while it is aside."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What was done for the renamed tables among those of a round."""

    moved: frozenset[TableName] = frozenset()
    """Names whose targets are other ones now, or none."""
    refused: Mapping[TableName, str] = field(default_factory=dict)
    """Names whose targets must stay as they are in this round, each with a sentence that says why."""


@dataclass(frozen=True, slots=True)
class _Move:
    """A target that is not in its table's place."""

    table: TableName
    earlier: Sequence[TableName]
    """The table's earlier names."""
    place: TableName
    """Under whose name the target is now."""
    state: TargetState

    @property
    def names(self) -> tuple[TableName, ...]:
        """All names of the table."""
        return (self.table, *self.earlier)


class Renames:
    """The renames up to the last commit of a view."""

    def __init__(
        self,
        spark: SparkSession,
        table_format: Format,
        template: TargetTemplate,
        options: MirrorOptions,
        view: LogView,
    ) -> None:
        self._spark = spark
        self._format = table_format
        self._template = template
        self._options = options
        self._view = view

    def follow(self, names: Sequence[TableName], known: Mapping[TableName, TargetState]) -> Followed:
        """Move the targets of these tables; `known` are the states in which this mirror left them."""
        moves: dict[TableName, _Move] = {}
        refused: dict[TableName, str] = {}
        for name in names:
            history = self._view.history(name)
            earlier = earlier_table_names(history, name)
            state = known.get(name)
            if not earlier or (state is not None and leads_to(history, state.note)):
                continue
            try:
                move = self._needed(name, earlier)
            except FAILURES as error:
                refused |= dict.fromkeys((name, *earlier), sentence(error))
                continue
            if move is not None:
                moves[name] = move
        moved = frozenset(name for move in moves.values() for name in move.names)
        _refuse_connected(moves, refused)
        try:
            self._carry_out(moves)
        except FAILURES as error:
            for move in moves.values():
                refused |= dict.fromkeys(move.names, sentence(error))
        return Followed(moved, refused)

    def _needed(self, name: TableName, earlier: Sequence[TableName]) -> _Move | None:
        """The move that brings the table's target into its place; None if it is there, or there is none.

        What an earlier move has copied and not removed any more is removed.
        """
        history = self._view.history(name)
        found = None
        for place in self._places(name, earlier):
            state = self._target(place).state()
            if state is None or not leads_to(history, state.note):
                continue
            if found is None:
                found = _Move(name, earlier, place, state)
            else:
                self._target(place).drop()
        return None if found is None or found.place == name else found

    def _places(self, name: TableName, earlier: Sequence[TableName]) -> Iterator[TableName]:
        """Where the table's target may be, without places that are the same for several names."""
        seen = set()
        for place in (name, *(each for old in earlier for each in (old, _aside(old)))):
            sql_name = self._target(place).sql_name
            if sql_name not in seen:
                seen.add(sql_name)
                yield place

    def _carry_out(self, moves: dict[TableName, _Move]) -> None:
        """Make the moves; those that are done are removed from `moves`."""
        while moves:
            by_place = {move.place: move for move in moves.values()}
            ready = next((move for name, move in moves.items() if name not in by_place), None)
            if ready is None:
                # A swap.
                waiting = next(iter(moves.values()))
                self._move(waiting, _aside(waiting.place))
                moves[waiting.table] = replace(waiting, place=_aside(waiting.place))
            else:
                self._move(ready, ready.table)
                del moves[ready.table]

    def _move(self, move: _Move, place: TableName) -> None:
        """Move a target to a place, without the one of another table that is there."""
        source, target = self._target(move.place), self._target(place)
        if target.state() is not None:
            target.drop()
        if source.rename(place):
            return
        # While columns are being altered, the note has their numbers, and a copy has other ones: then the
        # target is made anew from the output.
        if move.state.note.origins is None:
            note = replace(move.state.note, seq=move.state.seq)
            target.copy(source.sql_name, note, self._options.layout(move.table))
        source.drop()

    def _target(self, place: TableName) -> TargetTable:
        return self._format.table(self._spark, self._template, place)


def _refuse_connected(moves: dict[TableName, _Move], refused: dict[TableName, str]) -> None:
    """Refuse the moves that have to do with a refused name: they would remove the target that is there."""
    while found := [move for move in moves.values() if refused.keys() & set(move.names)]:
        for move in found:
            reason = next(refused[name] for name in move.names if name in refused)
            refused |= dict.fromkeys(move.names, reason)
            del moves[move.table]


def _aside(name: TableName) -> TableName:
    return TableName(name.database, f"{name.table}{_ASIDE}")
