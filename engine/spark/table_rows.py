"""The rows of one table for a read with `currentColumns`: those that its present rows come from.

The schema history gives the table's eras (`eras`). Each file of an era is read with its own columns, and a
view names them as the table's definition does at the last commit; rows from before a column was added get its
default. So schema versions can be read together whose types have nothing in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.output.change_schema import METADATA_FIELDS, own_name
from engine.output.column_types import common_type, plain_type
from engine.output.commit import DataFile, joined
from engine.output.data_files import DataFiles, FileRows
from engine.schema.changes import TableName
from engine.spark.definition_types import UNSIGNED_BIGINT, arrow_type, fraction_digits, value_of
from engine.spark.eras import Era, TableEras, described, table_eras
from engine.spark.log_view import LogView
from engine.spark.schema import query_schema
from engine.spark.tasks import View


@dataclass(frozen=True, slots=True)
class Phase:
    """Rows with `after` < `_seq` <= `until`, during which the table had one key."""

    keys: tuple[str, ...]
    """The columns of the key; empty without one."""
    after: int
    until: int


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a file in one era."""

    commit: int
    file: DataFile
    era: Era
    schema: pa.Schema


class TableRows:
    """The change rows that the rows of a table come from, at the last commit of a view of the log.

    With `after` only those with a larger `_seq`. Raises `EngineError` if there is no such table at that
    commit, or its definition is not certain.
    """

    def __init__(self, view: LogView, name: TableName, after: int = 0) -> None:
        self._view = view
        self.after = after
        self.name = name
        self.eras: TableEras = table_eras(
            name, view.history(name), view.last_seq, is_mariadb=view.is_mariadb()
        )

    @classmethod
    def since_emptied(cls, view: LogView, name: TableName, after: int = 0) -> TableRows:
        """The rows after that `_seq`, but only those since the table was created or last emptied."""
        rows = cls(view, name, after)
        start = rows.eras.start
        return cls(view, name, start.seq) if start is not None and start.seq > after else rows

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the table's columns in the result, hidden ones included."""
        return tuple(own_name(column.name) for column in self.eras.definition.columns)

    @property
    def shown_names(self) -> list[str]:
        """The names of the columns that `SELECT *` shows."""
        columns = self.eras.definition.columns
        return [name for name, column in zip(self.names, columns, strict=True) if column.visible]

    @cached_property
    def generated_names(self) -> frozenset[str]:
        """The names of generated columns that row images may lack although their values have changed.

        MariaDB, from 11.8.9 on, leaves them out of the images of updates and deletes. Those of a period it
        leaves in, but ALTER TABLE may change their values. Of other servers there are none.
        """
        if not self._view.is_mariadb():
            return frozenset()
        columns = zip(self.names, self.eras.definition.columns, strict=True)
        return frozenset(name for name, column in columns if column.generated is not None)

    def phases(self, keys: Sequence[str] | None = None) -> list[Phase]:
        """The rows by the primary key that the table had, in order, or all of them with `keys` as the key.

        Raises `EngineError` for an unknown column.
        """
        phases = [
            Phase(tuple(self.names[index] for index in key), after, until)
            for key, after, until in self.eras.phases()
        ]
        if keys is None:
            return phases
        for name in keys:
            if name not in self.names:
                raise EngineError(
                    f"there is no column `{name}` in {self.name}: the columns are {', '.join(self.names)}"
                )
        return [Phase(tuple(keys), phases[0].after if phases else 0, phases[-1].until if phases else 0)]

    def schema(self, columns: Sequence[str] | None) -> pa.Schema:
        """The schema of the rows, or of `columns`. Raises `EngineError` like `files`."""
        fields = list(map(pa.field, self.names, self.types))
        own = pa.schema([*fields, *METADATA_FIELDS])
        return query_schema({(self.name.database, self.name.table, 1): own}, columns)

    def files(self, first: int) -> tuple[list[DataFile], dict[str, tuple[View, ...]]]:
        """The files of the commits from `first` on that contain such rows, and their views, by path.

        Raises `EngineError` for rows of which it is not known which columns they have.
        """
        parts = [part for part in self._parts if part.commit >= first]
        # An entry is in several parts if it has rows of several eras.
        files = dict.fromkeys(part.file for part in parts)
        eras: dict[str, dict[Era, None]] = {}
        for part in parts:
            eras.setdefault(part.file.path, {})[part.era] = None
        views = {path: tuple(map(self._view_of, found)) for path, found in eras.items()}
        return joined(files), views

    def check_complete(self, *, allow_rewritten: bool) -> None:
        """Raise `EngineError` if these rows do not lead to the table's rows.

        With `allow_rewritten`, statements that changed rows without row events are accepted.
        """
        view = self._view
        first_name = self.eras.eras[0].table if self.eras.eras else self.name
        if self.after + 1 < view.first_seq() and view.had_rows(first_name, view.oldest):
            raise EngineError(
                f"change rows of {self.name} after `_seq` {self.after} were removed from {view.out} with the "
                f"commits before {view.oldest}, so the others do not lead to its rows: take a snapshot of "
                "the table"
            )
        columns = self.eras.definition.columns
        if view.is_mariadb() and any(each.is_of_period and each.data_type == "bigint" for each in columns):
            raise EngineError(
                f"the versions of {self.name}'s rows are numbers of transactions, and MariaDB logs changes "
                "of such tables as statements: declare ROW START and ROW END as TIMESTAMP(6)"
            )
        rewritten = [entry for entry in self.eras.rewritten if entry.seq >= self.after]
        if rewritten and not allow_rewritten:
            raise EngineError(
                f"rows of {self.name} were changed without row events by {described(rewritten[-1])}, so its "
                "change rows do not lead to its rows: take a snapshot of the table, or accept the difference "
                "with allow_rewritten"
            )

    def check_read(self) -> None:
        """Raise `EngineError` if a snapshot is still to read some of the table's rows, or was ended early."""
        start, view = self.eras.start, self._view
        latest, of_all_rows = view.snapshot(self.name) or (None, False)
        if start is None:
            is_read = latest is None or latest.state == "done" or not of_all_rows
        elif start.change.source == "snapshot" and start.commit >= view.oldest:
            is_read = view.was_read(start.change.emptied[0], start.commit)
        else:
            is_read = True
        if not is_read:
            reason = f" ({latest.reason})" if latest is not None and latest.reason else ""
            state = "" if latest is None else f": it is {_IN_WORDS.get(latest.state, latest.state)}{reason}"
            raise EngineError(
                f"at commit {view.last} the snapshot of {self.name} is not done{state}: wait until it is, or "
                "request it again"
            )

    @cached_property
    def _parts(self) -> list[_Part]:
        """All rows, in order, by file and era. Raises `EngineError`."""
        parts = []
        for commit, file in self._files():
            schema = self._view.schema((file.database, file.table, file.schema_version))
            for era in self._eras_after:
                if _may_have_rows(file, era):
                    part = _Part(commit, file, era, schema)
                    self._check(part)
                    parts.append(part)
        return parts

    @property
    def _eras_after(self) -> list[Era]:
        """The eras, without the rows up to `after`."""
        later = (era for era in self.eras.eras if era.until > self.after)
        return [replace(era, after=max(era.after, self.after)) for era in later]

    def _files(self) -> Iterator[tuple[int, DataFile]]:
        """The files of the table, under any of its names, since its start, with their commits."""
        names = {era.table for era in self._eras_after}
        start, oldest = self.eras.start, self._view.oldest
        first = self._view.commit_after(self.after) if self.after else oldest
        return self._view.files(names, first if start is None else max(start.commit, first))

    def _check(self, part: _Part) -> None:
        """Raise `EngineError` if the rows lack a column, or its name is not known."""
        names = part.era.names
        if names is None and self._has_rows(part):
            assert self.eras.unlinked is not None
            raise EngineError(
                f"it is not known which columns of {self.name} the rows up to `_seq` {part.era.until} have, "
                f"because of {described(self.eras.unlinked)}: take a snapshot of the table"
            )
        for name in names or ():
            if name is not None and part.schema.get_field_index(own_name(name)) < 0 and self._has_rows(part):
                raise EngineError(
                    f"rows of {self.name} up to `_seq` {part.era.until} lack the column `{name}`: they were "
                    f"written with {', '.join(_own_names(part.schema))}, before its name was known; "
                    "take a snapshot of the table"
                )

    def _has_rows(self, part: _Part) -> bool:
        """Whether the file really has rows of the era, and not only rows before and after it."""
        file, era = part.file, part.era
        if era.after < file.first_seq <= era.until or era.after < file.last_seq <= era.until:
            return True
        for batch in DataFiles(self._view.out).batches(FileRows.of(file)):
            numbers = batch.column("_seq").to_numpy()
            if bool(np.any((numbers > era.after) & (numbers <= era.until))):
                return True
        return False

    @cached_property
    def known_types(self) -> list[pa.DataType | None]:
        """The type of each column in these rows, the newest one; None if no row has the column.

        An integer column that was made smaller has the type that holds all values: the rows that had larger
        ones have changed or are gone, but these rows lead there.
        """
        types: list[pa.DataType | None] = [None] * len(self.names)
        for part in reversed(self._parts):
            for index, name in enumerate(part.era.names or ()):
                position = -1 if name is None else part.schema.get_field_index(own_name(name))
                if position >= 0:
                    older = plain_type(part.schema.field(position).type)
                    types[index] = _holding_integers(types[index] or older, older)
        return types

    @cached_property
    def types(self) -> list[pa.DataType]:
        """The same, but the type of the definition if no row has the column."""
        columns = self.eras.definition.columns
        return [known or arrow_type(column) for known, column in zip(self.known_types, columns, strict=True)]

    @cached_property
    def filled(self) -> list[Any]:
        """The value of each column in rows from before it was added."""
        return [
            None if text is None else value_of(text, column, data_type)
            for text, column, data_type in zip(
                self.eras.filled, self.eras.definition.columns, self.types, strict=True
            )
        ]

    @cached_property
    def _digits(self) -> dict[str, int]:
        """Of times that are texts, which have as many digits as the column had when they were written."""
        columns = zip(self.names, self.types, self.eras.definition.columns, strict=True)
        found = {name: fraction_digits(column) for name, kind, column in columns if pa.types.is_string(kind)}
        return {name: digits for name, digits in found.items() if digits}

    def _view_of(self, era: Era) -> View:
        names: dict[str, str] = {}
        constants: dict[str, Any] = {}
        for own, filled, name in zip(self.names, self.filled, era.names or (), strict=False):
            if name is None:
                constants[own] = filled
            else:
                names[own_name(name)] = own
        period = tuple(map(own_name, era.period))
        return View(era.after, era.until, names, constants, self._digits, period)


_IN_WORDS = {"failed": "set aside", "running": "being read"}
"""States of a snapshot."""


def _may_have_rows(file: DataFile, era: Era) -> bool:
    is_of_table = (file.database, file.table) == (era.table.database, era.table.table)
    return is_of_table and file.last_seq > era.after and file.first_seq <= era.until


def _holding_integers(newest: pa.DataType, older: pa.DataType) -> pa.DataType:
    """The newest type; of two integer types the one that holds both."""
    are_integers = pa.types.is_integer(newest) and (pa.types.is_integer(older) or older == UNSIGNED_BIGINT)
    return common_type(newest, older) if are_integers else newest


def _own_names(schema: pa.Schema) -> list[str]:
    metadata = {field.name for field in METADATA_FIELDS}
    return [f"`{name}`" for name in schema.names if name not in metadata]
