"""What the mirror promises, shown once for each format; the other modules here look closer."""

from __future__ import annotations

import os
import random
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from engine.binlog.table_definition import ColumnDefinition
from tests.servers import Server
from tests.support.batch_reads import assert_batches_read
from tests.support.engine_run import follow, wait_until
from tests.support.kept_rows import assert_kept, assert_random_statements_kept
from tests.support.kept_types import assert_every_type_kept
from tests.support.lakehouse import Lakehouse, mirror_command, session
from tests.support.load import TABLE, Load, create_table, selected
from tests.support.logged_table import AMOUNT, ID, NAME, Table
from tests.support.output import Change, Output
from tests.support.seeds import chosen_seed

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]

KILLS = int(os.environ.get("BINLOG_ENGINE_MIRROR_KILLS", "1"))
PATIENCE_SECONDS = 600.0


@pytest.mark.timeout(900 + 60 * KILLS)
def test_killed_at_random_moments(mysql97: Server, lake: Lakehouse, out: Path) -> None:
    seed = chosen_seed(5)
    chance = random.Random(seed)
    database = f"killed_{lake.to}"
    create_table(mysql97, database)
    with ExitStack() as running:
        engine = running.enter_context(follow(mysql97, out, tables=f"{database}.*"))
        load = running.enter_context(Load(mysql97, database, pause=0.05, seed=seed))
        for _ in range(KILLS):
            with mirror_command(lake, out, "--every", "0s") as command:
                wait_until(lambda: command.stdout, "round", PATIENCE_SECONDS, command.must_run)
                time.sleep(chance.uniform(0, 3))
        load.stop()
        engine.catch_up(mysql97)
        assert engine.stop().status == 0
    assert lake.mirror(out) == {}
    rows = {row["id"]: (row["balance"], row["owner"]) for row in lake.rows(f"{database}.{TABLE}")}
    assert rows == selected(mysql97, database)
    mysql97.execute(f"DROP DATABASE {database}")


def test_random_statements(mysql97: Server, lake: Lakehouse, out: Path) -> None:
    assert_random_statements_kept(mysql97, lake, out, f"evolving_{lake.to}", rounds=2, steps=6)


def test_every_type_of_mysql(mysql97: Server, lake: Lakehouse, out: Path) -> None:
    assert_every_type_kept(mysql97, lake, out, f"types_of_mysql_{lake.to}")


def test_a_column_that_needs_a_feature_of_delta_is_added(delta: Lakehouse, table: Table) -> None:
    table.insert(id=1, name="n", amount=1)
    assert_kept(delta, table)
    moment = ColumnDefinition("moment", "datetime")
    table.alter((*table.columns, moment), *(column.name for column in table.columns), None)
    table.insert(id=2, moment=datetime(2026, 1, 2, 3, 4, 5))
    assert_kept(delta, table)


def test_a_table_without_a_key_is_counted(lake: Lakehouse, out: Path) -> None:
    keyless = replace(ID, primary_key=None, nullable=True)
    table = Table(Output(out), keyless, NAME, AMOUNT, name="keyless")
    for _ in range(3):
        table.insert(id=1, name=None, amount=1)
    table.insert(id=2, name="two")
    assert_kept(lake, table)
    table.delete(table.rows[0])
    table.update(table.rows[-1], name="zwei")
    assert_kept(lake, table)
    # Of a snapshot, changes may come before the rows that they change.
    table.begin_snapshot()
    table.changes.append(Change("delete", {"id": 5, "name": "five", "amount": 5}))
    table.insert(id=6, name="six", amount=6)
    table.commit()
    assert lake.mirror(table.output.path) == {}
    assert {row["id"]: row["_copies"] for row in lake.rows(str(table.name))} == {5: -1, 6: 1}
    table.changes += [Change("snapshot", {"id": 5, "name": "five", "amount": 5})] * 2
    table.rows.append({"id": 5, "name": "five", "amount": 5})
    assert_kept(lake, table)
    # With a key the numbers are not needed any more.
    table.alter((ID, NAME, AMOUNT), "id", "name", "amount")
    table.update(table.rows[0], name="seis")
    assert_kept(lake, table)
    assert "_copies" not in lake.columns(str(table.name))
    table.alter((keyless, NAME, AMOUNT), "id", "name", "amount")
    table.insert(id=6, name="seis", amount=6)
    table.insert(id=6, name="seis", amount=6)
    assert_kept(lake, table)


def test_two_mirrors_of_one_target(lake: Lakehouse, table: Table) -> None:
    table.insert(id=1, name="n", amount=1)
    table.commit()
    table.insert(id=2, name="n", amount=2)
    table.commit()
    table.insert(id=3, name="n", amount=3)
    table.commit()
    message = lake.call(_interleaved, table.output.path, lake.to, lake.target)
    assert "another program writes rows to" in message and "a second mirror" in message
    assert_kept(lake, table)


def _interleaved(out: Path, to: str, target: str) -> str:
    """What the first of two mirrors that take turns says."""
    from engine.lakehouse import ConflictError, Mirror

    first, second = (Mirror(session(), out, target, to=to) for _ in range(2))
    first.run(until=0)
    second.run(until=1)
    try:
        first.run(until=2)
    except ConflictError as error:
        return str(error)
    return ""


def test_reads_of_an_output_with_older_pyspark(iceberg: Lakehouse, table: Table) -> None:
    """With the version that Iceberg is for."""
    assert_batches_read(iceberg, table)
