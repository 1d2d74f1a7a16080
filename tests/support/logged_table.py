"""A table whose rows and statements go into an output, and what SELECT would show of it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import ColumnDefinition
from engine.schema.changes import SchemaChange, Source, TableChange, TableName
from engine.spark.definition_types import arrow_type
from tests.support.output import Change, Output, delete, insert, update

Row = dict[str, Any]

ORDERS = TableName("shop", "orders")
ID = ColumnDefinition("id", "int", nullable=False, primary_key=1)
NAME = ColumnDefinition("name", "varchar(20)")
AMOUNT = ColumnDefinition("amount", "int")
POSITION = BinlogPosition("binlog.000001", 4)


class Table:
    """A table whose rows and statements go into an output; `rows` are what SELECT shows of it."""

    def __init__(
        self, output: Output, *columns: ColumnDefinition, name: str = ORDERS.table, version: int = 0
    ) -> None:
        self.output = output
        self.name = TableName("shop", name)
        self.columns = columns
        self.rows: list[Row] = []
        self._version = version
        self.changes: list[Change] = []
        self._logged_schema: pa.Schema | None = None
        self.create(*columns)

    # Rows

    def insert(self, **values: Any) -> None:
        row = {column.name: values.get(column.name) for column in self.columns}
        self.rows.append(row)
        self.changes.append(insert(**row))

    def update(self, row: Row, **values: Any) -> None:
        before = dict(row)
        row.update(values)
        self.changes += update(before, dict(row))

    def delete(self, row: Row) -> None:
        self.rows.remove(row)
        self.changes.append(delete(**row))

    def commit(self) -> int:
        """What there is becomes a commit; returns its number."""
        schema = pa.schema([(column.name, arrow_type(column)) for column in self.columns])
        if schema != self._logged_schema and self.changes:
            self.output.table(str(self.name), schema)
            self._logged_schema = schema
        number = self.output.commit({str(self.name): self.changes} if self.changes else {})
        self.changes = []
        return number

    # Statements

    def create(self, *columns: ColumnDefinition) -> None:
        self._define("CREATE TABLE …", columns)

    def alter(self, columns: tuple[ColumnDefinition, ...], *previous: str | None, **change: Any) -> None:
        """The rows have what they had in the columns of the `previous` names, or a default."""
        filled = tuple(
            column.default if name is None else None for column, name in zip(columns, previous, strict=True)
        )
        self._define("ALTER TABLE …", columns, previous_names=previous, filled=filled, **change)
        self.rows = [
            {
                column.name: _stored(column.default, column) if name is None else row[name]
                for column, name in zip(columns, previous, strict=True)
            }
            for row in self.rows
        ]

    def truncate(self) -> None:
        self._emptied()
        self.log("TRUNCATE TABLE …", emptied=(self.name,))

    def drop(self) -> None:
        self._emptied()
        self.log("DROP TABLE …", TableChange(self.name, self._next()), emptied=(self.name,))

    def begin_snapshot(self) -> None:
        """No row from before counts any more; `snapshot` rows and changes follow in any order."""
        self._emptied()
        self.log(None, emptied=(self.name,), source="snapshot")

    def rename(self, new: str) -> None:
        old, here = self._renamed(new)
        self.log("RENAME TABLE …", TableChange(old, here.version), here)

    def swap(self, other: Table) -> None:
        """Exchange the names in one statement."""
        old, here = self._renamed(other.name.table)
        _, there = other._renamed(old.table)
        self.log("RENAME TABLE …", here, there)

    def _renamed(self, new: str) -> tuple[TableName, TableChange]:
        """Take a new name; returns the old one, and the change."""
        self.commit()
        self._logged_schema = None
        old, self.name = self.name, TableName("shop", new)
        names = tuple(column.name for column in self.columns)
        here = TableChange(self.name, self._next(), self.columns, renamed_from=old, previous_names=names)
        return old, here

    def _define(self, text: str, columns: tuple[ColumnDefinition, ...], **change: Any) -> None:
        if list(map(arrow_type, columns)) != list(map(arrow_type, self.columns)) or [
            column.name for column in columns
        ] != [column.name for column in self.columns]:
            self.commit()
        self.columns = columns
        rewritten = change.pop("rewritten", ())
        self.log(text, TableChange(self.name, self._next(), columns, **change), rewritten=rewritten)

    def log(self, text: str | None, *tables: TableChange, source: Source = "statement", **parts: Any) -> None:
        seq = self.output.seq + len(self.changes)
        change = SchemaChange(source, BinlogPosition("binlog.000001", 100 * seq), text, tables, **parts)
        self.output.change_schema(change, seq)

    def _emptied(self) -> None:
        self.rows.clear()
        self.changes.append(Change("truncate", {}))

    def _next(self) -> int:
        self._version += 1
        return self._version


def _stored(text: str | None, column: ColumnDefinition) -> Any:
    return int(text) if text is not None and column.column_type == "int" else text
