"""Schema changes for the tests of what stores them: some made by hand, and strategies for any."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import ColumnDefinition
from engine.schema.changes import DatabaseChange, SchemaChange, TableChange, TableName

ORDERS, ITEMS = TableName("shop", "orders"), TableName("shop", "items")


def column(name: str, column_type: str = "int") -> ColumnDefinition:
    return ColumnDefinition(name, column_type)


def learned(*tables: TableChange, position: int = 4) -> SchemaChange:
    """Definitions that the server's catalog had."""
    return SchemaChange("server", BinlogPosition("binlog.000001", position), tables=tables)


def statement(text: str, *tables: TableChange, position: int = 4, **parts: Any) -> SchemaChange:
    """What a statement did; `parts` are fields of `SchemaChange`."""
    return SchemaChange("statement", BinlogPosition("binlog.000001", position), text, tables, **parts)


def defined(name: TableName, version: int, *columns: str, **parts: Any) -> TableChange:
    """A definition with INT columns; `parts` are fields of `TableChange`."""
    return TableChange(name, version, tuple(map(column, columns)) if columns else None, **parts)


texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ['"', "\\", "\n", ',"schema_changes":[{', '"]}', "orders", "shop"]
)
few_names = st.sampled_from(["a", "b", "c"])
table_names = st.builds(TableName, few_names, few_names)
columns = st.builds(
    ColumnDefinition,
    texts,
    texts,
    charset=st.none() | texts,
    collation=st.none() | texts,
    nullable=st.booleans(),
    primary_key=st.none() | st.integers(1, 16),
    visible=st.booleans(),
    generated=st.sampled_from([None, "virtual", "stored"]),
    default=st.none() | texts,
    computed_default=st.booleans(),
)
table_changes = st.builds(
    TableChange,
    table_names,
    st.integers(1, 99),
    columns=st.none() | st.lists(columns, max_size=3).map(tuple),
    doubt=st.none() | texts,
    renamed_from=st.none() | table_names,
    previous_names=st.none() | st.lists(st.none() | texts, max_size=3).map(tuple),
    filled=st.none() | st.lists(st.none() | texts, max_size=3).map(tuple),
    collation=st.none() | texts,
)
database_changes = st.builds(DatabaseChange, few_names, st.none() | texts, complete=st.booleans())
schema_changes = st.builds(
    SchemaChange,
    st.sampled_from(["statement", "data manipulation", "table map", "server", "schema file"]),
    st.builds(BinlogPosition, texts, st.integers(4, 1 << 40)),
    statement=st.none() | texts,
    tables=st.lists(table_changes, max_size=3, unique_by=lambda change: change.name).map(tuple),
    databases=st.lists(
        st.builds(DatabaseChange, few_names, st.none() | texts, complete=st.booleans()), max_size=2
    ).map(tuple),
    emptied=st.lists(st.builds(TableName, few_names, few_names | st.just("")), max_size=2).map(tuple),
    rewritten=st.lists(table_names, max_size=2).map(tuple),
)
