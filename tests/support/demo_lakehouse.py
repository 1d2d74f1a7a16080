"""`make demo-lakehouse`: a real MySQL server, kept as Delta tables by the engine and the mirror.

It needs what the tests need: the server and PySpark come from their cache.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.servers import Server, get_server
from tests.support.engine_run import EngineRun, follow
from tests.support.lakehouse import Lakehouse

TABLE = "shop.orders"
_STEPS = {
    "the rows that were there before": (),
    "rows are changed and deleted": (
        "UPDATE shop.orders SET quantity = 3, total = 14.85 WHERE id = 1",
        "UPDATE shop.orders SET id = 4 WHERE id = 2",
        "DELETE FROM shop.orders WHERE id = 3",
    ),
    "an ALTER TABLE arrives before the rows of the new definition": (
        "ALTER TABLE shop.orders ADD status VARCHAR(10) DEFAULT 'new', RENAME COLUMN sku TO article, "
        "MODIFY quantity BIGINT NOT NULL",
        "INSERT INTO shop.orders VALUES (5, 'milk', 4, 4.40, 'paid')",
        "UPDATE shop.orders SET status = 'sent' WHERE id = 1",
    ),
}


def main() -> int:
    """Run the demo and print each step; returns the exit code, 1 if a target differs from its table."""
    with get_server("mysql-9.7") as server, tempfile.TemporaryDirectory(prefix="demo-") as place:
        folder = Path(place)
        server.execute(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.orders (id INT PRIMARY KEY, sku VARCHAR(20), quantity INT NOT NULL, "
            "total DECIMAL(8,2))",
            "INSERT INTO shop.orders "
            "VALUES (1, 'tea', 2, 9.90), (2, 'coffee', 1, 7.50), (3, 'cups', 6, 24.00)",
        )
        with (
            follow(server, folder / "changes", start="snapshot", tables="shop.*") as engine,
            Lakehouse("delta", folder) as lake,
        ):
            engine.wait_for_commit(lambda commit: bool(commit.snapshots.ended), "end of the snapshot")
            return max([_step(title, server, engine, lake) for title in _STEPS])


def _step(title: str, server: Server, engine: EngineRun, lake: Lakehouse) -> int:
    """Execute the statements of a step, bring the target up to date, and compare."""
    print(f"\n== {title}", flush=True)
    for statement in _STEPS[title]:
        print(f"mysql> {statement};", flush=True)
        server.execute(statement)
    commit = engine.catch_up(server).version
    assert isinstance(engine.log.out, Path)
    lake.mirror(engine.log.out)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {TABLE} ORDER BY id")
        names = [column[0] for column in cursor.description]
        wanted = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    found = sorted(lake.rows(TABLE), key=lambda row: row["id"])
    print(f"\nthe Delta table at commit {commit}:")
    for row in found:
        print("  " + ", ".join(f"{name}={row[name]}" for name in names))
    is_same = _comparable(found) == _comparable(wanted)
    print(f"the same as SELECT * FROM {TABLE} on the server: {'yes' if is_same else 'NO'}", flush=True)
    return 0 if is_same else 1


def _comparable(rows: list[dict[str, Any]]) -> list[str]:
    """Rows without the order of their columns, since a new column is the target's last one."""
    return [repr(sorted(row.items())) for row in rows]


if __name__ == "__main__":
    from tests.support import demo_lakehouse

    sys.exit(demo_lakehouse.main())
