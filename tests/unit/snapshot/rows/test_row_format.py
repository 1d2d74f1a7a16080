"""What is selected of a table, and which results do not fit its definition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.binlog.field_types import FieldType as F
from engine.binlog.table_definition import ColumnDefinition, TableDefinition, table_key, unpack
from engine.errors import EngineError
from engine.schema.hidden_columns import version_columns
from engine.snapshot.rows.row_format import RowFormat
from tests.support.binary_rows import LATIN1, UNSIGNED, Typed, table, text

HASH = ColumnDefinition("DB_ROW_HASH_1", "bigint(20) unsigned", visible=False, generated="virtual")


def test_what_is_selected() -> None:
    columns = (
        ColumnDefinition("id", "int(11)"),
        ColumnDefinition("a`b", "varchar(10)", "utf8mb4"),
        ColumnDefinition("e", "enum('x','y')", "utf8mb4"),
        ColumnDefinition("s", "set('x','y')", "utf8mb4"),
        ColumnDefinition("u", "uuid"),
        ColumnDefinition("i4", "inet4"),
        ColumnDefinition("i6", "inet6"),
        # A column of one's own may have the name of a hidden one.
        replace(HASH, visible=True),
        *version_columns(),
        replace(HASH, name="DB_ROW_HASH_2"),
    )
    row_format = RowFormat.of(TableDefinition("shop", "orders", columns), "mariadb", (11, 8, 6))
    assert row_format.select_list == (
        *("`id`", "`a``b`", "CAST(`e` AS UNSIGNED)", "CAST(`s` AS UNSIGNED)", "CAST(`u` AS BINARY(16))"),
        *(
            "CAST(`i4` AS BINARY(4))",
            "CAST(`i6` AS BINARY(16))",
            "`DB_ROW_HASH_1`",
            "`row_start`",
            "`row_end`",
            "NULL",
        ),
    )
    assert unpack(row_format.packed_columns[table_key("shop", "orders")]) == columns


def test_members_that_are_not_certain_are_selected_as_texts() -> None:
    columns = (
        ColumnDefinition("k", "enum('a?')", "utf8mb4", nullable=False, primary_key=1),
        ColumnDefinition("e", "enum('a?','b')", "utf8mb4", nullable=False),
        ColumnDefinition("s", "set('a?','b')", "gb18030"),
        ColumnDefinition("t", "enum('a😀','b')", "utf8mb4"),
        ColumnDefinition("l", "enum('a?','b')", "latin1"),
    )
    row_format = RowFormat.of(TableDefinition("shop", "orders", columns), "mysql", (8, 0, 15))
    assert row_format.select_list == (
        *("CAST(`k` AS UNSIGNED)", "`e`", "`s`", "CAST(`t` AS UNSIGNED)", "CAST(`l` AS UNSIGNED)"),
    )
    assert unpack(row_format.packed_columns[table_key("shop", "orders")]) == (
        columns[0],
        replace(columns[1], column_type="longtext"),
        replace(columns[2], column_type="longtext"),
        *columns[3:],
    )


def test_a_type_that_cannot_be_read() -> None:
    definition = TableDefinition("shop", "orders", (ColumnDefinition("x", "xmltype"),))
    with pytest.raises(EngineError, match=r"rows of shop\.orders cannot be read: column x .* xmltype"):
        RowFormat.of(definition, "mariadb", (12, 3, 1))


@pytest.mark.parametrize(
    ("defined", "sent"),
    [
        (Typed("int", F.LONG), Typed("bigint", F.LONGLONG)),
        (Typed("int", F.LONG), Typed("int unsigned", F.LONG, UNSIGNED)),
        (Typed("float", F.FLOAT), Typed("int", F.LONG)),
        (Typed("datetime(3)", F.DATETIME, decimals=3), Typed("datetime(6)", F.DATETIME, decimals=6)),
        (Typed("datetime", F.DATETIME), Typed("timestamp", F.TIMESTAMP)),
        (Typed("date", F.DATE), Typed("datetime", F.DATETIME)),
        (Typed("time", F.TIME), Typed("datetime", F.DATETIME)),
        (Typed("year(4)", F.YEAR), Typed("int", F.SHORT)),
        (Typed("bit(3)", F.BIT), Typed("int", F.LONG)),
        (Typed("decimal(5,2)", F.NEWDECIMAL, decimals=2), text("varchar(10)")),
        (Typed("set({})".format(",".join(f"'{n}'" for n in range(40))), F.LONGLONG), Typed("int", F.LONG)),
        (text("varchar(10)"), Typed("varchar(10)", F.VAR_STRING, charset="latin1", collation=LATIN1)),
        (text("varchar(10)"), Typed("varbinary(10)", F.VAR_STRING)),
        (Typed("varbinary(10)", F.VAR_STRING), text("varchar(10)")),
        (text("varchar(10)"), Typed("int", F.LONG)),
    ],
)
def test_results_of_another_type(defined: Typed, sent: Typed) -> None:
    definition, columns = table([defined])
    row_format = RowFormat.of(definition, "mysql", (9, 7, 0))
    assert row_format.plan(columns).operations.shape[0] == 1
    with pytest.raises(EngineError, match=r"column c0 of shop\.orders is not .* altered"):
        row_format.plan([sent.result("c0")])
    with pytest.raises(EngineError, match="2 columns instead of 1"):
        row_format.plan([*columns, *columns])
