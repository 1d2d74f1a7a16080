"""What is selected of a table, and how each value of the result becomes a cell of a row image.

A table's rows are read as a server would log an INSERT of them, so that the decoders of the stream decode
them. Most columns are selected as they are; ENUM, SET and MariaDB's addresses as the numbers and bytes that
are stored, but ENUM and SET as texts where those of the members are not certain. What the server says of the
result's columns is compared with the table's definition, since the table may have been altered in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from engine.binlog.charsets import same_charset
from engine.binlog.collations import BINARY, collation_name
from engine.binlog.definition_fit import written_type
from engine.binlog.field_types import FieldType as F
from engine.binlog.table_definition import ColumnDefinition, TableDefinition, pack, table_key
from engine.dataclass import dataclass
from engine.decode.columns.decimals import GROUP_BYTES, digit_groups
from engine.errors import EngineError
from engine.net.protocol.resultset import ColumnDefinition as ResultColumn
from engine.output.sql_text import quoted_name
from engine.schema.hidden_columns import is_hash
from engine.snapshot.rows import transcription
from engine.snapshot.rows.packed_values import DATE_BYTES, DATETIME_BYTES, TIME_BYTES, TIMESTAMP_BYTES
from engine.snapshot.rows.transcription import PARAMETERS, Operation

SESSION_STATEMENT = (
    "SET SESSION time_zone = '+00:00', sql_mode = '', character_set_results = NULL, "
    "sql_select_limit = 18446744073709551615"
)
"""What a session needs to set so that values are those of the binlog: instants in UTC, CHAR without padding,
texts as they are stored; and all rows."""

_UNSIGNED_FLAG = 0x20
_INTEGERS = {F.TINY: 1, F.SHORT: 2, F.INT24: 4, F.LONG: 4, F.LONGLONG: 8}
"""Type in the result → bytes of its binary value."""
_SAME_NUMBERS = _INTEGERS | {F.FLOAT: 4, F.DOUBLE: 8}
_STORED_BYTES = {F.TINY: 1, F.SHORT: 2, F.INT24: 3, F.LONG: 4, F.LONGLONG: 8, F.FLOAT: 4, F.DOUBLE: 8}
_STRINGS = frozenset(
    {
        *(F.VARCHAR, F.VAR_STRING, F.STRING, F.TINY_BLOB, F.MEDIUM_BLOB, F.LONG_BLOB, F.BLOB),
        *(F.BLOB_COMPRESSED, F.VARCHAR_COMPRESSED, F.VECTOR, F.JSON, F.GEOMETRY),
    }
)
_LENGTH_IN_METADATA = frozenset({F.STRING, F.VARCHAR, F.VARCHAR_COMPRESSED})
_COMPRESSED = frozenset({F.VARCHAR_COMPRESSED, F.BLOB_COMPRESSED})
_TEMPORAL = {
    F.DATE: (Operation.MOMENT, F.DATE, DATE_BYTES),
    F.DATETIME2: (Operation.MOMENT, F.DATETIME, DATETIME_BYTES),
    F.TIMESTAMP2: (Operation.MOMENT, F.TIMESTAMP, TIMESTAMP_BYTES),
    F.TIME2: (Operation.TIME, F.TIME, TIME_BYTES),
}
"""Stored type → operation, type in the result, bytes before the fraction."""
_ADDRESS_BYTES = {"uuid": 16, "inet4": 4, "inet6": 16}
_NUMBERED = (F.ENUM, F.SET)
_BROKEN_JSON_BEFORE = (8, 0)
"""MySQL before breaks lines within the strings that show bytes in a document, which JSON does not allow."""
_NO_VALUE = "NULL"
"""What is selected of hidden hashes of MariaDB's long unique keys, which no statement can name."""


class AlteredTable(EngineError):
    """A result does not have the columns of the table's definition, which was read before it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """How the value of one selected column becomes a cell of a row image."""

    column: ColumnDefinition
    expression: str
    """What is selected."""
    type_code: F
    metadata: int
    """Of the column in the table map."""
    mariadb: bool

    @classmethod
    def of(cls, column: ColumnDefinition, *, mariadb: bool, version: tuple[int, ...]) -> Self:
        """The cell of a column of a server of that version. Raises `EngineError` as `written_type` does."""
        code, metadata = written_type(column, mariadb=mariadb)
        name = quoted_name(column.name)
        if not column.visible and is_hash(column):
            return cls(column, _NO_VALUE, code, metadata, mariadb)
        if code in _NUMBERED:
            name = f"CAST({name} AS UNSIGNED)"
        elif code == F.JSON and version < _BROKEN_JSON_BEFORE:
            name = f"REPLACE({name}, '\\n', '\\\\n')"
        elif size := _ADDRESS_BYTES.get(column.data_type):
            name = f"CAST({name} AS BINARY({size}))"
        return cls(column, name, code, metadata, mariadb)

    def parameters(self, result: ResultColumn, groups: list[int]) -> dict[int, int] | None:
        """The row of the plan for a result's column; None if the column is not of this cell's type.

        Groups of digits are appended to `groups`.
        """
        code = self.type_code
        if self.expression == _NO_VALUE:
            return _copy(_SAME_NUMBERS[code], _STORED_BYTES[code])
        if code in _SAME_NUMBERS:
            unsigned = bool(result.flags & _UNSIGNED_FLAG)
            if result.type_code != code or (code in _INTEGERS and unsigned != self.column.unsigned):
                return None
            return _copy(_SAME_NUMBERS[code], _STORED_BYTES[code])
        if code in _NUMBERED:
            size = _INTEGERS.get(F(result.type_code)) if result.type_code in _INTEGERS else None
            return None if size is None or size < self.metadata else _copy(size, self.metadata)
        if code == F.YEAR:
            digits = 2 if self.column.column_type.startswith("year(2)") else 4
            return _one(Operation.YEAR, 1, digits) if result.type_code == F.YEAR else None
        if code == F.NEWDECIMAL:
            return self._decimal(groups) if result.type_code == F.NEWDECIMAL else None
        if code == F.BIT:
            size = (self.metadata >> 8) + (self.metadata & 0xFF > 0)
            return _one(Operation.BYTES, size, 0) if result.type_code == F.BIT else None
        if code in _TEMPORAL:
            return self._temporal(result)
        return self._content(result)

    def _decimal(self, groups: list[int]) -> dict[int, int]:
        precision, scale = self.metadata & 0xFF, self.metadata >> 8
        digits, _ = digit_groups(precision, scale)
        first = len(groups)
        groups += digits
        return _one(Operation.DECIMAL, sum(GROUP_BYTES[count] for count in digits), 0) | {
            transcription.FIRST_GROUP: first,
            transcription.LAST_GROUP: len(groups),
            transcription.WHOLE: precision - scale,
            transcription.FRACTION: scale,
        }

    def _temporal(self, result: ResultColumn) -> dict[int, int] | None:
        operation, code, whole = _TEMPORAL[self.type_code]
        digits = 0 if code == F.DATE else result.decimals
        if result.type_code != code or digits != self.metadata:
            return None
        fraction_bytes = (self.metadata + 1) // 2
        unit = 10 ** (6 - 2 * fraction_bytes)
        return _one(operation, whole + fraction_bytes, unit) | {transcription.WHOLE: whole}

    def _content(self, result: ResultColumn) -> dict[int, int] | None:
        if result.type_code not in _STRINGS or not self._has_charset_of(result.charset):
            return None
        marked = self.type_code in _COMPRESSED
        if self.type_code in _LENGTH_IN_METADATA:
            prefix, limit = 2 if self.metadata > 255 else 1, self.metadata
        else:
            prefix, limit = self.metadata, (1 << 8 * self.metadata) - 1
        operation = Operation.MARKED_CONTENT if marked else Operation.CONTENT
        return _one(operation, prefix, limit - marked)

    def _has_charset_of(self, collation: int) -> bool:
        """Whether the column's text can have that collation; an added one may be of any character set."""
        if (
            self.type_code == F.JSON
            or collation_name(collation, "mariadb" if self.mariadb else "mysql") is None
        ):
            return True
        return same_charset(self.column.charset or BINARY, collation)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The arrays from which the kernel learns what to do with each value."""

    operations: NDArray[np.int64]
    """A row per selected column; see `transcription`."""
    groups: NDArray[np.int64]
    """Digits of the groups of all DECIMAL columns."""
    overhead: int
    """Bytes by which a row image may be larger than the packet of its row."""


@dataclass(frozen=True, slots=True)
class RowFormat:
    """How the rows of one table definition are selected and transcribed."""

    definition: TableDefinition
    """With columns of text instead of some ENUM and SET columns, whose members are not certain."""
    mariadb: bool
    version: tuple[int, ...]
    cells: tuple[Cell, ...]
    """Of all columns, in the table's order."""

    @classmethod
    def of(cls, definition: TableDefinition, flavor: str, version: tuple[int, ...]) -> Self:
        """The format for a server's flavor (`mysql` or `mariadb`) and version.

        Raises `EngineError`, naming the table and the column, for a type that cannot be read.
        """
        mariadb = flavor == "mariadb"
        definition = replace(definition, columns=tuple(map(_with_certain_texts, definition.columns)))
        try:
            cells = tuple(Cell.of(column, mariadb=mariadb, version=version) for column in definition.columns)
        except EngineError as error:
            where = f"{definition.database}.{definition.table}"
            raise EngineError(f"the rows of {where} cannot be read: {error}") from error
        return cls(definition, mariadb, version, cells)

    @property
    def select_list(self) -> tuple[str, ...]:
        """The expressions to select, in order."""
        return tuple(cell.expression for cell in self.cells)

    @property
    def packed_columns(self) -> dict[str, bytes]:
        """The entry of `Batch.packed_columns` for the table."""
        return {table_key(self.definition.database, self.definition.table): pack(self.definition.columns)}

    def plan(self, columns: Sequence[ResultColumn]) -> Plan:
        """The plan for a result whose columns the server describes so.

        Raises `AlteredTable`, naming the column, if the server selects another type than the definition says.
        """
        where = f"{self.definition.database}.{self.definition.table}"
        if len(columns) != len(self.cells):
            raise AlteredTable(f"a result of {where} has {len(columns)} columns instead of {len(self.cells)}")
        operations = np.zeros((len(self.cells), PARAMETERS), np.int64)
        groups: list[int] = []
        for row, cell, result in zip(operations, self.cells, columns, strict=True):
            parameters = cell.parameters(result, groups)
            if parameters is None:
                raise AlteredTable(
                    f"column {cell.column.name} of {where} is not {cell.column.column_type} in the result "
                    f"(type {result.type_code}): the table was altered, so its definition must be read again"
                )
            row[list(parameters)] = list(parameters.values())
        # All but copied numbers may grow: by a length, or from a text to a stored form.
        grows = operations[:, transcription.OPERATION] != Operation.COPY
        overhead = int((operations[grows, transcription.TARGET] + 1).sum())
        return Plan(operations, np.array(groups, np.int64), overhead)


def _with_certain_texts(column: ColumnDefinition) -> ColumnDefinition:
    """A column whose values are selected as texts if the texts of its members are not certain.

    But those of the primary key are as in the stream, with whose rows they are compared.
    """
    is_text = column.may_hide_characters and column.primary_key is None
    return replace(column, column_type="longtext") if is_text else column


def _one(operation: Operation, target: int, limit: int) -> dict[int, int]:
    return {
        transcription.OPERATION: int(operation),
        transcription.TARGET: target,
        transcription.LIMIT: limit,
    }


def _copy(source: int, target: int) -> dict[int, int]:
    return _one(Operation.COPY, target, 0) | {transcription.SOURCE: source}
