"""What a mirror does with each kind of change, for Delta and for Iceberg, from outputs made here."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine.binlog.table_definition import ColumnDefinition
from engine.config.table_filter import TableFilter
from engine.output.consumers import consumers
from tests.support.kept_rows import assert_kept, expected, kept_columns
from tests.support.lakehouse import Lakehouse, crashed_mirror, session
from tests.support.logged_table import AMOUNT, ID, NAME, Table
from tests.support.output import Change, Output
from tests.support.seeds import chosen_seed

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

BIG = replace(AMOUNT, column_type="bigint")


def test_alterations(lake: Lakehouse, table: Table) -> None:
    for number in range(4):
        table.insert(id=number, name=f"n{number}", amount=number)
    assert_kept(lake, table)
    label = replace(NAME, name="label with.dot")
    note = ColumnDefinition("größe; {a}", "varchar(9)", default="it's")
    table.alter((note, ID, label, BIG), None, "id", "name", "amount")
    table.update(table.rows[0], amount=1 << 40)
    table.delete(table.rows[1])
    assert_kept(lake, table)
    exchanged = (note, ID, replace(label, name=note.name), BIG)
    table.alter((replace(note, name=label.name), *exchanged[1:]), note.name, "id", label.name, "amount")
    table.update(table.rows[0], id=9)
    assert_kept(lake, table)
    table.alter((ID, BIG), "id", "amount")
    table.insert(id=10, amount=10)
    assert_kept(lake, table)
    dropped = {row["id"]: row[label.name] for row in lake.rows(str(table.name))}
    assert dropped == {2: "it's", 3: "it's", 9: "it's", 10: None}
    table.alter((ID, BIG, replace(note, name=label.name, default="new")), "id", "amount", None)
    assert_kept(lake, table)
    assert {row[label.name] for row in lake.rows(str(table.name))} == {"new"}


ADDED = {
    "datetime(6)": datetime(2026, 1, 2, 3, 4, 5, 6),
    "date": date(2026, 1, 2),
    "timestamp": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "decimal(20,4)": Decimal("12.3456"),
    "bigint unsigned": Decimal(1 << 63),
    "double": 0.1,
    "blob": b"\x00\xff",
    "json": '{"a": 1}',
    "vector(2)": [0.5, 1.5],
}


@pytest.mark.parametrize("mode", ["table", "changelog"])
def test_columns_of_all_types_are_added(lake: Lakehouse, table: Table, mode: str) -> None:
    """Some need a feature of Delta that a table without such a column does not have."""
    table.insert(id=1, name="n", amount=1)
    table.commit()
    assert lake.mirror(table.output.path, mode=mode) == {}
    added = tuple(ColumnDefinition(kind, kind) for kind in ADDED)
    table.alter((*table.columns, *added), *(column.name for column in table.columns), *(None for _ in added))
    table.insert(id=2, **ADDED)
    table.commit()
    assert lake.mirror(table.output.path, mode=mode) == {}
    (row,) = (row for row in lake.rows(str(table.name)) if row["id"] == 2)
    assert {kind: row[kind] for kind in ADDED} == ADDED


def test_a_column_of_documents_is_added(lake: Lakehouse, table: Table) -> None:
    table.insert(id=1, name="n", amount=1)
    assert_kept(lake, table, json="variant")
    table.alter((*table.columns, ColumnDefinition("doc", "json")), "id", "name", "amount", None)
    table.insert(id=2, doc='{"a": [1]}')
    table.commit()
    assert lake.mirror(table.output.path, json="variant") == {}
    found = lake.sql(f"SELECT variant_get(doc, '$.a[0]', 'int') AS x FROM {{{table.name}}} WHERE id = 2")
    assert found == [{"x": 1}]


def test_dropped_columns_are_dropped_on_request(lake: Lakehouse, table: Table) -> None:
    table.insert(id=1, name="n", amount=1)
    assert_kept(lake, table)
    table.alter((ID, NAME), "id", "name")
    assert_kept(lake, table, dropped_columns="drop")
    assert lake.columns(str(table.name)) == ["id", "name", "_seq"]


def test_truncate_drop_and_snapshot(lake: Lakehouse, table: Table) -> None:
    table.insert(id=1, name="n", amount=1)
    assert_kept(lake, table)
    table.truncate()
    table.insert(id=2, name="n", amount=2)
    assert_kept(lake, table)
    table.begin_snapshot()
    table.insert(id=7, name="changed", amount=7)
    table.changes.append(Change("snapshot", {"id": 8, "name": "old", "amount": 8}))
    table.rows.append({"id": 8, "name": "old", "amount": 8})
    assert_kept(lake, table)
    table.drop()
    assert_kept(lake, table)
    table.create(ID, replace(NAME, column_type="int"))
    table.insert(id=1, name=5)
    assert_kept(lake, table)
    assert sorted(lake.columns(str(table.name))) == ["_seq", "id", "name"]


def test_a_renamed_table_and_another_one_of_its_name(lake: Lakehouse, table: Table) -> None:
    table.insert(id=1, name="n", amount=1)
    assert_kept(lake, table)
    old = table.name
    table.rename(f"{old.table}_renamed")
    table.insert(id=2, name="n", amount=2)
    assert_kept(lake, table)
    assert not lake.exists(str(old))
    other = Table(table.output, ID, name=old.table, version=9)
    other.insert(id=77)
    assert_kept(lake, other)
    assert_kept(lake, table)


def test_partial_images(lake: Lakehouse, table: Table) -> None:
    for number in range(3):
        table.insert(id=number, name=f"n{number}", amount=number)
    assert_kept(lake, table)
    table.changes += [
        Change("update_preimage", {"id": 0}, ["name", "amount"]),
        Change("update_postimage", {"name": None}, ["id", "amount"]),
        Change("update_preimage", {"id": 0}, ["name", "amount"]),
        Change("update_postimage", {"amount": 100}, ["id", "name"]),
        Change("update_preimage", {"id": 1}, ["name", "amount"]),
        Change("update_postimage", {"name": "eins"}, ["id", "amount"]),
        Change("delete", {"id": 2}, ["name", "amount"]),
        Change("insert", {"id": 5, "name": "five"}, ["amount"]),
    ]
    table.rows = [
        {"id": 0, "name": None, "amount": 100},
        {"id": 1, "name": "eins", "amount": 1},
        {"id": 5, "name": "five", "amount": None},
    ]
    assert_kept(lake, table)


def test_generated_columns_that_images_lack(lake: Lakehouse, out: Path) -> None:
    """MariaDB logs them with inserts only: they are NULL after an update, and distinguish no rows."""
    output = Output(out, "mariadb")
    tables = [
        Table(output, key, AMOUNT, replace(NAME, generated="stored"), name=name)
        for name, key in (("keyed", ID), ("counted", replace(ID, primary_key=None)))
    ]
    for table in tables:
        for number in (1, 1 + (table is tables[0]), 3, 4):
            table.insert(id=number, amount=number, name=f"n{number}")
        table.commit()
    assert lake.mirror(out) == {}
    for table in tables:
        _, updated, deleted, _ = table.rows
        table.changes += [
            Change("update_preimage", {"id": updated["id"], "amount": updated["amount"]}, ["name"]),
            Change("update_postimage", {"id": updated["id"], "amount": 7}, ["name"]),
            Change("delete", {"id": deleted["id"], "amount": deleted["amount"]}, ["name"]),
        ]
        table.rows = [table.rows[0], updated | {"amount": 7, "name": None}, table.rows[3]]
        table.commit()
    assert lake.mirror(out) == {}
    for table in tables:
        assert kept_columns(lake, table) == expected(table)


def test_a_table_that_cannot_follow_is_set_aside_until_it_is_empty(lake: Lakehouse, table: Table) -> None:
    other = Table(table.output, ID, name=f"{table.name.table}_other")
    other.insert(id=1)
    table.insert(id=1, name="n", amount=1)
    table.commit()
    assert_kept(lake, other)
    table.alter((ID, NAME, replace(AMOUNT, column_type="varchar(9)")), "id", "name", "amount")
    table.insert(id=2, name="n", amount="two")
    table.commit()
    other.insert(id=2)
    other.commit()
    (found,) = lake.mirror(table.output.path).items()
    assert found[0] == str(table.name)
    assert "`amount` is now string, and the target's int cannot become that" in found[1]
    assert kept_columns(lake, other) == expected(other)
    assert [row["id"] for row in lake.rows(str(table.name))] == [1]
    assert lake.standings(table.output.path)[str(table.name)] == (2, found[1])
    table.truncate()
    table.insert(id=3, name="n", amount="three")
    assert_kept(lake, table)
    assert set(lake.standings(table.output.path).values()) == {(table.output.log.latest_version(), None)} | {
        lake.standings(table.output.path)[str(other.name)]
    }


def test_a_statement_without_row_events_sets_the_table_aside(lake: Lakehouse, table: Table) -> None:
    table.insert(id=1, name="1", amount=1)
    assert_kept(lake, table)
    number = replace(NAME, column_type="int")
    table.alter((ID, number, AMOUNT), "id", "name", "amount", rewritten=(table.name,))
    table.commit()
    (reason,) = lake.mirror(table.output.path).values()
    assert "changed without row events by the statement `ALTER TABLE …`" in reason


CRASHES = int(os.environ.get("BINLOG_ENGINE_MIRROR_CRASHES", "3"))
_WRITES = 12
"""About how many writes a round of the test has."""


def test_a_crash_before_any_write(lake: Lakehouse, table: Table) -> None:
    """The mirror ends before its n-th write, for a few n at random, and another one goes on."""
    seed = chosen_seed(6)
    table.insert(id=0, name="n", amount=0)
    table.commit()
    label = replace(NAME, name="label")
    note = ColumnDefinition("note", "varchar(9)", default="d")
    for number in random.Random(seed).sample(range(1, _WRITES + 1), min(CRASHES, _WRITES)):
        table.insert(id=number, name=f"n{number}", amount=number)
        if number % 2:
            table.truncate()
            table.insert(id=1000, name="first", amount=0)
        first = table.columns[1].name
        table.alter((ID, label if first == "name" else NAME, AMOUNT), "id", first, "amount")
        table.update(table.rows[-1], amount=5)
        table.alter((*table.columns, note), "id", table.columns[1].name, "amount", None)
        table.insert(id=2000, name="last", amount=1, note="given")
        table.commit()
        assert crashed_mirror(lake, table.output.path, number) or number > 3
        assert lake.mirror(table.output.path) == {}
        assert kept_columns(lake, table) == expected(table), number
        table.alter(table.columns[:3], "id", table.columns[1].name, "amount")
        table.delete(table.rows[-1])


def test_changelog(lake: Lakehouse, table: Table) -> None:
    table.insert(id=1, name="n", amount=1)
    table.commit()
    place = f"{table.name}"
    assert lake.mirror(table.output.path, mode="changelog") == {}
    table.alter((ID, replace(NAME, name="label"), BIG), "id", "name", "amount")
    table.update(table.rows[0], label="m", amount=1 << 40)
    table.truncate()
    table.commit()
    assert lake.mirror(table.output.path, mode="changelog") == {}
    assert lake.mirror(table.output.path, mode="changelog") == {}
    found = lake.sql(f"SELECT _change_type, id, name, label, amount FROM {{{place}}} ORDER BY _seq")
    assert [tuple(row.values()) for row in found] == [
        ("insert", 1, "n", None, 1),
        ("update_preimage", 1, None, "n", 1),
        ("update_postimage", 1, None, "m", 1 << 40),
        ("truncate", None, None, None, None),
    ]
    (row, *_) = lake.sql(f"SELECT * FROM {{{place}}} ORDER BY _seq")
    names = {"delta": ("_file", "_pos"), "iceberg": ("_binlog_file", "_binlog_pos")}[lake.to]
    assert tuple(row[name] for name in names) == ("binlog.000001", 100)
    (reason,) = lake.mirror(table.output.path).values()
    assert "has change rows, not the table's" in reason


def test_a_changelog_of_an_older_version(iceberg: Lakehouse, table: Table) -> None:
    """It has columns with Iceberg's own names, with which Iceberg cannot read it."""
    table.insert(id=1, name="n", amount=1)
    table.commit()
    assert iceberg.mirror(table.output.path, mode="changelog") == {}
    for name in ("file", "pos"):
        iceberg.sql(f"ALTER TABLE {{{table.name}}} RENAME COLUMN _binlog_{name} TO _{name}")
    table.insert(id=2, name="n", amount=2)
    table.commit()
    assert iceberg.mirror(table.output.path, mode="changelog") == {}
    found = iceberg.sql(f"SELECT id, _binlog_file, _binlog_pos FROM {{{table.name}}} ORDER BY id")
    assert [tuple(row.values()) for row in found] == [(1, "binlog.000001", 100), (2, "binlog.000001", 200)]


def test_a_mirror_that_is_registered_as_a_consumer(lake: Lakehouse, table: Table) -> None:
    out = table.output.path
    table.insert(id=1, name="n", amount=1)
    assert_kept(lake, table, consumer="lake")
    assert [(each.name, each.commit) for each in consumers(out)] == [("lake", 0)]
    table.alter((ID, NAME, replace(AMOUNT, column_type="varchar(9)")), "id", "name", "amount")
    table.insert(id=2, name="n", amount="two")
    table.commit()
    assert lake.mirror(out, consumer="lake") != {}
    assert [each.commit for each in consumers(out)] == [0]
    table.truncate()
    last = table.commit()
    assert lake.mirror(out, consumer="lake") == {}
    assert [each.commit for each in consumers(out)] == [last]


def test_only_wanted_tables(lake: Lakehouse, table: Table) -> None:
    other = Table(table.output, ID, name=f"{table.name.table}_other")
    other.insert(id=1)
    other.commit()
    table.insert(id=1, name="n", amount=1)
    assert_kept(lake, table, tables=TableFilter((str(table.name),)))
    assert not lake.exists(str(other.name))


def test_layout_and_json(lake: Lakehouse, out: Path) -> None:
    document = ColumnDefinition("doc", "json")
    day = ColumnDefinition("day", "date")
    table = Table(Output(out), ID, document, day, name="documents")
    table.insert(id=1, doc='{"a": [1, 2.5, "x"]}')
    table.commit()
    options: dict[str, Any] = {"json": "variant", "partition_by": {str(table.name): ["day"]}}
    if lake.to == "delta":
        options["cluster_by"] = {str(table.name): ["id"]}
        del options["partition_by"]
    assert lake.mirror(table.output.path, **options) == {}
    table.insert(id=2, doc="[7]")
    table.commit()
    assert lake.mirror(table.output.path, **options) == {}
    found = lake.sql(
        f"SELECT id, variant_get(doc, '$.a[2]', 'string') AS x FROM {{{table.name}}} ORDER BY id"
    )
    assert sorted(map(repr, found)) == ["{'id': 1, 'x': 'x'}", "{'id': 2, 'x': None}"]


def test_an_empty_text_in_a_partition_of_delta(delta: Lakehouse, out: Path) -> None:
    """Delta stores NULL in its place, which would not be found again."""
    key = replace(NAME, primary_key=2)
    table = Table(Output(out), ID, key, AMOUNT, name="partitioned")
    options: dict[str, Any] = {"partition_by": {str(table.name): [key.name]}}
    table.insert(id=1, name="de", amount=1)
    assert_kept(delta, table, **options)
    table.update(table.rows[0], amount=2)
    assert_kept(delta, table, **options)
    before = expected(table)
    table.insert(id=2, name="", amount=3)
    table.commit()
    (reason,) = delta.mirror(out, **options).values()
    assert "`name` is empty in a row of" in reason
    assert kept_columns(delta, table) == before


def test_delta_does_not_partition_by_bytes(delta: Lakehouse, out: Path) -> None:
    """It would store them as text."""
    table = Table(Output(out), ID, ColumnDefinition("b", "varbinary(4)"), name="bytes")
    table.insert(id=1, b=b"\xff")
    table.commit()
    (reason,) = delta.mirror(out, partition_by={str(table.name): ["b"]}).values()
    assert reason.startswith("Delta cannot store the bytes of b")


def test_a_type_that_was_widened_before_its_first_large_value(lake: Lakehouse, table: Table) -> None:
    table.insert(id=1, name="n", amount=1)
    assert_kept(lake, table)
    table.update(table.rows[0], amount=2)
    table.alter((ID, NAME, BIG), "id", "name", "amount")
    assert_kept(lake, table)
    assert lake.sql(f"SELECT typeof(amount) AS kind FROM {{{table.name}}}") == [{"kind": "bigint"}]
    table.update(table.rows[0], amount=1 << 40)
    assert_kept(lake, table)


def test_a_type_that_was_narrowed_after_its_last_large_value(lake: Lakehouse, table: Table) -> None:
    table.insert(id=1, name="n", amount=1)
    assert_kept(lake, table)
    table.alter((ID, NAME, replace(AMOUNT, column_type="bigint")), "id", "name", "amount")
    table.insert(id=2, name="n", amount=1 << 40)
    table.update(table.rows[1], amount=2)
    table.alter((ID, NAME, AMOUNT), "id", "name", "amount")
    table.insert(id=3, name="n", amount=3)
    assert_kept(lake, table)


def test_a_kill_before_the_checksum_of_a_commit(delta: Lakehouse, table: Table) -> None:
    """Delta then reads its log from the last checkpoint on, which needs a session."""
    for number in range(12):
        table.insert(id=number, name="n", amount=1)
        assert_kept(delta, table)
    log = delta.place / table.name.database / table.name.table / "_delta_log"
    assert (log / "_last_checkpoint").exists()
    max(log.glob("*.crc")).unlink()
    delta.call(_forget_logs)
    table.insert(id=12, name="n", amount=1)
    assert_kept(delta, table)


def _forget_logs() -> None:
    session()._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
