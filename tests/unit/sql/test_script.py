"""Scripts of small outputs: order, transactions, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import ColumnDefinition, TableDefinition
from engine.commands.sql import write_script
from engine.config.settings import SqlSettings
from engine.errors import EngineError
from engine.output.prepared import PreparedTransaction, UndoneTransaction, XaRollback
from engine.schema.changes import SchemaChange, TableChange, TableName
from engine.sql.tables import Elsewhere, nowhere
from tests.support.output import EVENTS, Change, Output, delete, insert, update

COLUMNS = pa.schema([pa.field("id", pa.int64()), pa.field("d", pa.date32()), pa.field("v", pa.string())])
T = "shop.t"
TIME = 1_700_000_000


@pytest.fixture
def output(tmp_path: Path) -> Output:
    output = Output(tmp_path)
    output.table(T, COLUMNS)
    output.table("shop.u", COLUMNS)
    return output


def lines(output: Output, **settings: Any) -> list[str]:
    """The statements of a script without those of the session."""
    text = StringIO()
    write_script(output.path, SqlSettings(sources=(output.path,), **settings), text)
    return [line for line in text.getvalue().splitlines() if not line.startswith(("SET ", "--"))]


def refusal(output: Output, **settings: Any) -> str:
    with pytest.raises(EngineError) as refused:
        lines(output, **settings)
    return str(refused.value)


def entry(kind: str, statement: str | None = None, database: str = "shop", **data: Any) -> Change:
    text = json.dumps({"timestamp": TIME, **data})
    return Change("", {"type": kind, "database": database, "statement": statement, "data": text})


def test_undo_is_redo_backward(output: Output) -> None:
    output.commit({T: [insert(id=1, v="a"), *update({"id": 1, "v": "a"}, {"id": 2, "v": "b"})]})
    output.commit({"shop.u": [insert(id=7)], T: [delete(id=2, v="b")]}, batch_rows=1)
    assert lines(output) == [
        "BEGIN;",
        "INSERT INTO `shop`.`t` (`id`, `d`, `v`) VALUES (1, NULL, 'a');",
        "UPDATE `shop`.`t` SET `id` = 2, `d` = NULL, `v` = 'b' WHERE `id` = 1;",
        "COMMIT;",
        "BEGIN;",
        "INSERT INTO `shop`.`u` (`id`, `d`, `v`) VALUES (7, NULL, NULL);",
        "DELETE FROM `shop`.`t` WHERE `id` = 2;",
        "COMMIT;",
    ]
    assert lines(output, undo=True) == [
        "BEGIN;",
        "INSERT INTO `shop`.`t` (`id`, `d`, `v`) VALUES (2, NULL, 'b');",
        "DELETE FROM `shop`.`u` WHERE `id` = 7;",
        "COMMIT;",
        "BEGIN;",
        "UPDATE `shop`.`t` SET `id` = 1, `d` = NULL, `v` = 'a' WHERE `id` = 2;",
        "DELETE FROM `shop`.`t` WHERE `id` = 1;",
        "COMMIT;",
    ]


def test_many_rows_and_batches_stay_in_order(output: Output) -> None:
    rows = [insert(id=number) for number in range(5000)]
    output.commit({T: rows}, batch_rows=1700)
    made = [int(line.split("(")[2].split(",")[0]) for line in lines(output) if line.startswith("INSERT")]
    assert made == list(range(5000))
    undone = [int(line.split("= ")[1][:-1]) for line in lines(output, undo=True) if line.startswith("DELETE")]
    assert undone == list(range(5000))[::-1]


def test_transactions_that_were_rolled_back_after_they_were_prepared(output: Output) -> None:
    """They are left out, with what undoes them: also where only the one or the other is chosen."""
    rollback = XaRollback(BinlogPosition("binlog.000001", 1200), None, 0)
    output.commit({T: [insert(id=1), insert(id=2)], "shop.u": [insert(id=3)]}, batch_rows=1)
    output.prepared = (
        PreparedTransaction("X'31',X'',1", 0, 2, 3, rollback),
        PreparedTransaction("2", 1, 5, 5),
    )
    output.commit({EVENTS: [entry("QUERY_EVENT", "XA ROLLBACK X'31',X'',1")], T: [insert(id=5)]})
    kept = ["BEGIN;", "INSERT INTO `shop`.`t` (`id`, `d`, `v`) VALUES (1, NULL, NULL);", "COMMIT;"]
    prepared = ["BEGIN;", "INSERT INTO `shop`.`t` (`id`, `d`, `v`) VALUES (5, NULL, NULL);", "COMMIT;"]
    assert lines(output) == [*kept, *prepared]
    output.prepared, output.undone = (
        output.prepared[1:],
        (UndoneTransaction(2, 3, 6, 7), UndoneTransaction(9, 9, 10, 9)),
    )
    output.commit({"shop.u": [delete(id=3)], T: [delete(id=2), insert(id=8), insert(id=9), insert(id=10)]})
    own = [
        "BEGIN;",
        *(f"INSERT INTO `shop`.`t` (`id`, `d`, `v`) VALUES ({id}, NULL, NULL);" for id in (8, 10)),
        "COMMIT;",
    ]
    assert lines(output) == [*kept, *prepared, *own]
    assert lines(output, until="binlog.000001:400") == kept
    assert lines(output, since="binlog.000001:600") == own
    assert "DELETE FROM `shop`.`t` WHERE `id` = 1;" in lines(output, undo=True)
    assert not [line for line in lines(output, undo=True) if "`u`" in line or "2" in line]


def test_images_without_unchanged_columns(output: Output) -> None:
    """With NOBLOB a column that did not change is in neither image."""
    before, after = (
        Change(kind, {"id": 1, "d": None}, ["v"]) for kind in ("update_preimage", "update_postimage")
    )
    output.commit({T: [before, after]})
    statement = "UPDATE `shop`.`t` SET `id` = 1, `d` = NULL, `v` = `v` WHERE `id` = 1;"
    assert lines(output)[1] == lines(output, undo=True)[1] == statement
    output.commit({T: [Change("delete", {"id": 1}, ["v"])]})
    assert "the old values of `v`" in refusal(output, undo=True)
    assert lines(output)[-2] == "DELETE FROM `shop`.`t` WHERE `id` = 1;"


def test_json_differences_are_refused(output: Output) -> None:
    images = (
        Change("update_preimage", {"id": 1}, ["d", "v"]),
        Change("update_postimage", {"v": '[{"op": "remove", "path": "$.a"}]'}, ["id", "d", "v"]),
    )
    output.commit({T: list(images)})
    assert "only differences of `v`" in refusal(output)


def test_rows_that_are_not_changes(output: Output) -> None:
    output.commit({T: [Change("snapshot", {"id": 1})]})
    output.commit({T: [insert(id=2)]})
    assert "a snapshot read" in refusal(output)
    assert "INSERT INTO `shop`.`t` (`id`, `d`, `v`) VALUES (2, NULL, NULL);" in lines(
        output, since="binlog.000001:200"
    )


def test_dates_that_the_output_lacks(output: Output) -> None:
    output.commit({T: [insert(id=1)]}, counters={"zero_dates": 1})
    assert "column `d` of shop.t" in refusal(output)


def test_texts_that_the_output_lacks(output: Output) -> None:
    output.commit({T: [insert(id=1, v="a\ufffdb")]})
    assert len(lines(output)) == 3
    output.commit({T: [insert(id=1, v="a\ufffdb")]}, counters={"invalid_characters": 1})
    assert "column `v` of shop.t" in refusal(output)


@pytest.mark.parametrize(
    "feed,reason",
    [
        (entry("QUERY_EVENT", "/* x */ insert into t values (1)"), "without row events"),
        (entry("CORRUPT_EVENT", dropped="transaction"), "dropped"),
        (entry("EXECUTE_LOAD_QUERY_EVENT", "LOAD DATA …"), "without row events"),
        (entry("QUERY_EVENT", "CREATE TABLE t AS SELECT * FROM other.x"), "without row events"),
    ],
)
def test_entries_that_no_script_can_contain(output: Output, feed: Change, reason: str) -> None:
    output.commit({EVENTS: [feed]})
    for undo in (True, False):
        assert reason in refusal(output, undo=undo)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD COLUMN c INT",
        "/*!50003 DROP TABLE */ `other`.`x`, t",
        "TRUNCATE `shop`.`t`",
        "RENAME TABLE x TO y, y TO t",
        "DROP DATABASE shop",
        "ALTER TABLE x EXCHANGE PARTITION p WITH TABLE t",
        "CREATE OR REPLACE TABLE t (a INT)",
    ],
)
def test_definitions_are_made_again_and_not_undone(output: Output, statement: str) -> None:
    output.commit({EVENTS: [entry("QUERY_EVENT", statement)]})
    made = lines(output, tables=("shop.t",))
    assert made == [*(["USE `shop`;"] if "DATABASE" not in statement else []), statement, ";"]
    assert "cannot be undone" in refusal(output, undo=True, tables=("shop.t",))


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE other ADD COLUMN c INT",
        "CREATE TEMPORARY TABLE t (a INT)",
        "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1",
        "GRANT SELECT ON shop.t TO u",
        "DROP DATABASE elsewhere",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE other AS SELECT 1",
    ],
)
def test_other_statements_do_not_matter(output: Output, statement: str) -> None:
    output.commit({EVENTS: [entry("QUERY_EVENT", statement)]})
    for undo in (True, False):
        assert lines(output, undo=undo, tables=("shop.t",)) == []


@pytest.mark.parametrize(
    "options",
    [
        "{}",
        "{} ENGINE=InnoDB COMMENT=') START TRANSACTION'",
        "{} /*!50100 PARTITION BY HASH (`id`) */",
        " ENGINE=InnoDB{}",
        " COMMENT='TRANSACTION'",
    ],
)
def test_a_table_created_with_rows(output: Output, options: str) -> None:
    statement = "CREATE TABLE `t` (`id` int)" + options.format(" START TRANSACTION")
    created = entry("QUERY_EVENT", statement, status={"sql_mode": 0})
    output.commit({EVENTS: [created], T: [insert(id=1)]})
    repeated = "CREATE TABLE `t` (`id` int)" + options.format("")
    assert lines(output)[:4] == ["USE `shop`;", repeated, ";", "BEGIN;"]


def settings(output: Output) -> list[str]:
    """What a script sets, from its first statement on."""
    text = StringIO()
    write_script(output.path, SqlSettings(sources=(output.path,)), text)
    return [line for line in text.getvalue().splitlines() if line.startswith("SET ")][2:]


def test_a_statement_has_the_settings_of_its_session(output: Output) -> None:
    statement = "ALTER TABLE t ADD moment TIMESTAMP DEFAULT '2020-01-01'"
    status = {"time_zone": "it's", "microseconds": 42, "auto_increment_increment": 5}
    output.commit({EVENTS: [entry("QUERY_EVENT", statement, status=status), entry("QUERY_EVENT", statement)]})
    assert settings(output) == [
        f"SET SESSION time_zone = 'it''s', SESSION timestamp = {TIME}.000042, "
        "SESSION auto_increment_increment = 5, SESSION auto_increment_offset = 1;",
        "SET SESSION time_zone = '+00:00', SESSION timestamp = DEFAULT;",
        f"SET SESSION timestamp = {TIME}.000000, SESSION auto_increment_increment = 1;",
        "SET SESSION timestamp = DEFAULT;",
    ]


def test_a_statement_of_mariadb_has_the_settings_of_its_session(tmp_path: Path) -> None:
    output = Output(tmp_path, "mariadb")
    output.table(T, COLUMNS)
    status = {"flags2": 1 << 24, "character_set_collations": [[8, 47], [33, 83]]}
    created = entry("QUERY_EVENT", "CREATE TABLE t (a TIMESTAMP)", status=status)
    output.commit({EVENTS: [created, entry("QUERY_EVENT", "CREATE TABLE u (a TIMESTAMP)", status={})]})
    assert [line[line.index("/*") :] for line in settings(output) if "/*" in line] == [
        "/*M!100804 , SESSION explicit_defaults_for_timestamp = 1 */ "
        "/*M!110201 , SESSION character_set_collations = 'latin1=latin1_bin,utf8mb3=utf8mb3_bin' */;",
        "/*M!100804 , SESSION explicit_defaults_for_timestamp = 0 */ "
        "/*M!110201 , SESSION character_set_collations = '' */;",
    ]


def test_generated_columns_are_known_from_elsewhere(output: Output) -> None:
    """A table map, even one with full metadata, does not say which columns are generated."""
    name = TableName("shop", "t")
    columns = ColumnDefinition("id", "bigint"), ColumnDefinition("d", "date"), ColumnDefinition("v", "text")
    learned = TableChange(name, 1, columns=columns)
    output.change_schema(SchemaChange("table map", BinlogPosition("binlog.000001", 4), tables=(learned,)))
    output.commit({T: [insert(id=1, v="a")]})
    catalog = TableDefinition("shop", "t", (*columns[:2], replace(columns[2], generated="stored")))

    def insertion(elsewhere: Elsewhere) -> str:
        text = StringIO()
        write_script(output.path, SqlSettings(sources=(output.path,)), text, elsewhere)
        return next(line for line in text.getvalue().splitlines() if line.startswith("INSERT"))

    assert insertion({name: catalog}.get) == "INSERT INTO `shop`.`t` (`id`, `d`) VALUES (1, NULL);"
    assert insertion(nowhere) == "INSERT INTO `shop`.`t` (`id`, `d`, `v`) VALUES (1, NULL, 'a');"
