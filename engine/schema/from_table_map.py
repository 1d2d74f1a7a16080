"""A table's definition from its table map alone, where the binlog has full metadata."""

from __future__ import annotations

from engine.binlog.charsets import collation_charset, widest_character
from engine.binlog.collations import BINARY
from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.binlog.table_definition import ColumnDefinition, TableDefinition, quoted
from engine.binlog.table_map import TableMap
from engine.binlog.type_names import type_name
from engine.schema.hidden_columns import is_hash_name

_CHARACTER_TYPES = (FieldType.VARCHAR, FieldType.VAR_STRING, FieldType.STRING)


def definition_of(table_map: TableMap) -> TableDefinition:
    """The definition; columns without names are called as in `TableMap.columns`.

    Defaults and generated columns are not in a table map, nor is a collation's name. MariaDB's hidden hashes
    of unique keys are known by their names.
    """
    columns = table_map.columns(None)
    keys = {index: number for number, (index, _) in enumerate(table_map.optional.primary_key, 1)}
    return TableDefinition(
        table_map.database,
        table_map.table,
        tuple(_definition(column, keys.get(index)) for index, column in enumerate(columns)),
    )


def _definition(column: Column, primary_key: int | None) -> ColumnDefinition:
    charset = None if column.collation is None else collation_charset(column.collation)
    is_hash = column.type_code == FieldType.LONGLONG and is_hash_name(column.name)
    return ColumnDefinition(
        name=column.name,
        column_type=_column_type(column, charset),
        charset=None if charset == BINARY else charset,
        nullable=column.nullable,
        primary_key=primary_key,
        visible=column.visible is not False and not is_hash,
        generated="virtual" if is_hash else None,
    )


def _column_type(column: Column, charset: str | None) -> str:
    if column.members is not None:
        kind = "enum" if column.type_code == FieldType.ENUM else "set"
        return f"{kind}({','.join(map(quoted, column.members))})"
    name = type_name(column)
    if column.type_code in _CHARACTER_TYPES and charset is not None and charset != BINARY:
        # The table map has the length in bytes.
        return f"{name.partition('(')[0]}({column.metadata // widest_character(charset)})"
    return name
