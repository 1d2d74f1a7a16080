"""The `schema` command: lists, histories and definitions, as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import ColumnDefinition
from engine.cli import main
from engine.commands.definition_differences import Difference, differences
from engine.commands.schema import schema_report
from engine.errors import EngineError
from engine.schema.changes import SchemaChange, Source, TableChange, TableName
from tests.support.output import FIRST_COMMIT_US, SECOND_US, Output

ORDERS, OLD, ITEMS = TableName("shop", "orders"), TableName("shop", "old"), TableName("shop", "items")

ID = ColumnDefinition("id", "int", nullable=False, primary_key=1)
NAME = ColumnDefinition("name", "varchar(20)", "utf8mb4", "utf8mb4_bin")
AMOUNT = ColumnDefinition("amount", "int", default="0")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """`old`, read from the server, is altered and renamed to `orders`, which a statement rewrites and another
    empties; `items` is not certain; `gone` is dropped."""
    output = Output(tmp_path / "out")

    def log(text: str | None, *tables: TableChange, **parts: Any) -> None:
        source: Source = "server" if text is None else "statement"
        position = BinlogPosition("binlog.000001", 100 * (output.log.latest_version() + 2))
        output.change_schema(SchemaChange(source, position, text, tables, **parts))
        output.commit({})

    label = replace(NAME, name="label", column_type="varchar(40)")
    log(None, TableChange(OLD, 1, (ID, NAME)))
    log(
        "ALTER TABLE old  RENAME COLUMN name TO label,\n ADD amount INT DEFAULT 0 FIRST",
        TableChange(OLD, 2, (AMOUNT, ID, label), previous_names=(None, "id", "name")),
    )
    renamed = TableChange(
        ORDERS, 1, (AMOUNT, ID, label), renamed_from=OLD, previous_names=("amount", "id", "label")
    )
    log("RENAME TABLE old TO orders", TableChange(OLD, 3), renamed)
    log("ALTER TABLE orders DROP PARTITION p1", rewritten=(ORDERS,))
    log("ALTER TABLE items FROBNICATE", TableChange(ITEMS, 1, doubt="the statement is not understood"))
    gone = TableName("shop", "gone")
    log("CREATE TABLE gone (id INT)", TableChange(gone, 1, (ID,)))
    log("DROP TABLE gone", TableChange(gone, 2), emptied=(gone,))
    return output.path


def test_the_list_has_every_table_that_exists(out: Path) -> None:
    assert (
        schema_report(out, None, None).text()
        == """\
commit 6, 2023-11-14 22:13:26 UTC

table        version  columns  primary key
shop.items         1        ?               not certain: the statement is not understood
shop.orders        1        3  id           changed by statement: ALTER TABLE orders DROP PARTITION p1 \
(binlog.000001:400)"""
    )
    values = schema_report(out, None, "3").values()
    assert (values["commit"], values["time_us"]) == (3, FIRST_COMMIT_US + 3 * SECOND_US)
    (orders,) = values["tables"]
    assert orders["changed_by_statement"] == {
        "commit": 3,
        "time_us": FIRST_COMMIT_US + 3 * SECOND_US,
        "seq": 0,
        "source": "statement",
        "file": "binlog.000001",
        "position": 400,
        "statement": "ALTER TABLE orders DROP PARTITION p1",
    }
    del orders["changed_by_statement"]
    assert orders == {
        "database": "shop",
        "table": "orders",
        "version": 1,
        "column_count": 3,
        "primary_key": ["id"],
        "doubt": None,
    }


def test_the_history_follows_a_table_through_its_names(out: Path) -> None:
    assert (
        schema_report(out, "shop.orders", None).text()
        == """\
shop.orders

version 1, commit 0, 2023-11-14 22:13:20 UTC, after _seq 0 as shop.old
    learned from the server at binlog.000001:100
    columns     id int, name varchar(20)
    primary key id

version 2, commit 1, 2023-11-14 22:13:21 UTC, after _seq 0 as shop.old
    ALTER TABLE old RENAME COLUMN name TO label, ADD amount INT DEFAULT 0 FIRST (binlog.000001:200)
    renamed     name to label
    added       amount int
    changed     label: type varchar(20) to varchar(40)

version 1, commit 2, 2023-11-14 22:13:22 UTC, after _seq 0
    RENAME TABLE old TO orders (binlog.000001:300)
    table       renamed from shop.old

commit 3, 2023-11-14 22:13:23 UTC, after _seq 0
    ALTER TABLE orders DROP PARTITION p1 (binlog.000001:400)
    rewritten   rows changed without row events"""
    )


def test_the_history_of_a_dropped_table(out: Path) -> None:
    text = schema_report(out, "shop.gone", None).text()
    assert text.endswith(
        "    DROP TABLE gone (binlog.000001:700)\n"
        "    emptied     all rows removed\n"
        "    gone        dropped, or renamed to another name"
    )
    with pytest.raises(EngineError, match=r"no definition of shop\.gone at commit 6"):
        schema_report(out, "shop.gone", "6")


def test_the_history_as_json(out: Path) -> None:
    values = json.loads(json.dumps(schema_report(out, "shop.orders", None).values()))
    assert [(change["table"], change["version"]) for change in values["changes"]] == [
        ("old", 1),
        ("old", 2),
        ("orders", 1),
        ("orders", None),
    ]
    first, second, third, fourth = values["changes"]
    assert first["differences"] is None and first["columns"][0]["name"] == "id"
    assert second["differences"][1] == {
        "kind": "added",
        "column": "amount",
        "attribute": None,
        "before": None,
        "after": "int",
    }
    assert third["renamed_from"] == {"database": "shop", "table": "old"} and third["differences"] == []
    assert fourth["rewritten"] and not fourth["emptied"] and fourth["columns"] is None


def test_a_definition_at_a_commit_or_a_time(out: Path) -> None:
    text = schema_report(out, "shop.old", "0").text()
    assert text.splitlines()[0] == "shop.old, version 1 at commit 0, 2023-11-14 22:13:20 UTC"
    assert [line.split() for line in text.splitlines()[3:]] == [
        ["column", "type", "character", "set", "null", "default", "key"],
        ["id", "int", "no", "primary", "1"],
        ["name", "varchar(20)", "utf8mb4_bin", "yes"],
    ]
    assert (
        schema_report(out, "shop.old", "2023-11-14T22:13:20.5Z").values()
        == schema_report(out, "shop.old", "0").values()
    )
    values = schema_report(out, "shop.old", "1").values()
    assert [column["name"] for column in values["columns"]] == ["amount", "id", "label"]
    assert values["since"]["commit"] == 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["shop.ordres"], r"there is no table shop.ordres in .* up to commit 6: did you mean shop.orders\?"),
        (["x"], r"there is no table x in .*: it has shop.gone, shop.items, shop.old, shop.orders"),
        (["--at", "7"], "there is no commit 7 in .*: it has the commits 0 to 6"),
        (["--at", "2001-01-01"], "`--at` is `2001-01-01`, which is before the first commit"),
        (["--at", "soon"], "`--at` is `soon`, but it takes the number of a commit, or a time such as"),
    ],
)
def test_what_is_not_there(
    out: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["schema", str(out), *arguments]) == 1
    assert capsys.readouterr().err.startswith("binlog-engine: ")
    with pytest.raises(EngineError, match=message):
        schema_report(out, *((None, arguments[1]) if arguments[0] == "--at" else (arguments[0], None)))


def test_the_command_prints_text_or_json(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", str(out), "shop.orders"]) == 0
    assert capsys.readouterr().out.startswith("shop.orders\n\nversion 1, commit 0")
    assert main(["schema", str(out), "--json"]) == 0
    assert [table["table"] for table in json.loads(capsys.readouterr().out)["tables"]] == ["items", "orders"]


def test_an_empty_folder_is_not_an_output(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="there is no commit in"):
        schema_report(tmp_path, None, None)


def test_differences_of_every_kind() -> None:
    a, b, c = (ColumnDefinition(name, "int") for name in "abc")
    before = (replace(a, primary_key=1), b, c)
    after = (
        replace(b, name="x", primary_key=1, nullable=False),
        replace(a, default="1", visible=False),
        replace(c, generated="stored"),
    )
    found = differences(before, after, ("b", "a", None))
    assert found == [
        Difference("dropped", "c", before="int"),
        Difference("renamed", "x", before="b", after="x"),
        Difference("added", "c", after="int"),
        Difference("changed", "x", "nullable", "yes", "no"),
        Difference("changed", "a", "default", None, "1"),
        Difference("changed", "a", "visible", "yes", "no"),
        Difference("reordered", before="a, b, c", after="x, a, c"),
        Difference("primary key", before="a", after="x"),
    ]
    assert [difference.text() for difference in found][3:5] == [
        "changed     x: nullable yes to no",
        "changed     a: default none to 1",
    ]
