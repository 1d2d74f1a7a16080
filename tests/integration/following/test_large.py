"""A value of 40 MB and a transaction of 300 MB: they arrive whole, and no process needs 500 MB for them.

So do transactions that the server has compressed (`binlog_transaction_compression`), and rows that lack most
columns (`binlog_row_image` MINIMAL), which become many times as large.

BINLOG_ENGINE_TRANSACTION_GIGABYTES=3 makes the transaction so large; the limit is the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.output.commit_log import CommitLog
from engine.output.reader import Changes
from tests.servers import Server, get_server
from tests.support.committed import assert_sound
from tests.support.engine_run import drain

pytestmark = [pytest.mark.server, pytest.mark.slow]

MEGABYTE = 1 << 20
LARGE_VALUE = 40 * MEGABYTE
GIGABYTES = float(os.environ.get("BINLOG_ENGINE_TRANSACTION_GIGABYTES", "0.3"))
VALUES, SMALL_ROWS = int(834 * GIGABYTES), int(1_700_000 * GIGABYTES)
TRANSACTION = int(GIGABYTES * 1e9)
MEMORY_LIMIT = 500_000_000
WIDE, WIDE_ROWS = 100, 200_000

NUMBERS = (
    "WITH RECURSIVE digits (d) AS (SELECT 0 UNION ALL SELECT d + 1 FROM digits WHERE d < 9) "
    "SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d + 100000 * g.d + 1000000 * h.d AS n "
    "FROM digits a, digits b, digits c, digits e, digits f, digits g, digits h"
)


@pytest.fixture(scope="module", params=["mysql-9.7", "mysql-9.7 compressed", "mariadb-11.8"])
def filled(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with a binlog of a large value, then a large transaction."""
    flavor, _, compressed = request.param.partition(" ")
    with get_server(flavor) as server:
        server.execute(
            "CREATE DATABASE large",
            "CREATE TABLE large.vals (id INT PRIMARY KEY, content LONGBLOB, note LONGTEXT)",
            "CREATE TABLE large.small_rows (id INT PRIMARY KEY, content VARCHAR(100))",
            # Its period divides neither a packet's length nor a buffer's.
            f"INSERT INTO large.vals VALUES (0, REPEAT(SHA2('period', 512), {LARGE_VALUE // 128}), 'ä')",
        )
        before = binlog_size(server)
        server.execute(
            *(["SET SESSION binlog_transaction_compression = ON"] if compressed else []),
            "START TRANSACTION",
            f"INSERT INTO large.vals SELECT n + 1, REPEAT(SHA2(n, 512), {MEGABYTE // 128}), n "
            f"FROM ({NUMBERS}) numbers WHERE n < {VALUES}",
            f"INSERT INTO large.small_rows SELECT n, REPEAT(CHAR(97 + n % 26), 90) FROM ({NUMBERS}) numbers "
            f"WHERE n < {SMALL_ROWS}",
            "COMMIT",
        )
        assert (binlog_size(server) - before > TRANSACTION) == (not compressed)
        yield server


def binlog_size(server: Server) -> int:
    """Bytes in all binlogs: MariaDB makes a large transaction a file of its own."""
    return sum(size for _, size, *_ in server.query("SHOW BINARY LOGS"))


def test_large_values_and_transactions_arrive_whole(filled: Server, tmp_path: Path) -> None:
    out, report = tmp_path / "out", tmp_path / "report.json"
    drain(filled, out, report=report)
    assert_sound(out)
    expected = dict(
        filled.query("SELECT id, CONCAT_WS(' ', SHA2(content, 256), LENGTH(content), note) FROM large.vals")
    )
    found = {}
    for batch in Changes(out).batches("large", "vals"):
        for key, content, note in zip(*(batch[name] for name in ("id", "content", "note")), strict=True):
            digest = hashlib.sha256(content.as_buffer()).hexdigest()
            found[key.as_py()] = f"{digest} {content.as_buffer().size} {note.as_py()}"
    assert found == expected
    count, total = filled.query(
        "SELECT COUNT(*), SUM(CRC32(CONCAT(id, ' ', content))) FROM large.small_rows"
    )[0]
    rows = Changes(out).read("large", "small_rows")
    texts = zip(rows["id"].to_pylist(), rows["content"].to_pylist(), strict=True)
    assert (len(rows), sum(zlib.crc32(b"%d %s" % (key, text.encode())) for key, text in texts)) == (
        count,
        total,
    )
    # One transaction is in one commit, however many files it takes.
    log = CommitLog(out)
    commits = list(log.range(0, log.latest_version()))
    holders = [commit for commit in commits if any(file.table == "small_rows" for file in commit.files)]
    assert len(holders) == 1
    assert sum(file.rows for file in holders[0].files if file.table == "vals") in (VALUES, VALUES + 1)

    memory = memory_of(report)
    print(filled.flavor, {name: f"{peak / 1e6:.0f} MB" for name, peak in memory.items()})
    assert {"supervisor", "network", "decoder-0", "decoder-1", "sink"} <= memory.keys()
    assert max(memory.values()) < MEMORY_LIMIT


def memory_of(report: Path) -> dict[str, int]:
    """By process the most memory that it had, in bytes."""
    processes = json.loads(report.read_text())["processes"]
    return {name: usage["peak_memory"] for name, usage in processes.items()}


def test_rows_that_lack_most_columns(tmp_path: Path) -> None:
    """They have 100 columns, and take 5 or 10 bytes in the binlog before the server compresses them.

    An update with all columns comes before them, so that small transactions need not be opened any more.
    """
    out, report = tmp_path / "out", tmp_path / "report.json"
    columns = ", ".join(f"c{number} TINYINT DEFAULT {number}" for number in range(WIDE))
    with get_server("mysql-9.7", {"binlog_row_metadata": "FULL"}) as server:
        server.execute(
            "CREATE DATABASE large",
            f"CREATE TABLE large.wide (id INT PRIMARY KEY, changed INT, {columns})",
            f"INSERT INTO large.wide (id) SELECT n FROM ({NUMBERS}) numbers WHERE n < {WIDE_ROWS}",
        )
        file, position = server.query("SHOW BINARY LOGS")[-1][:2]
        server.execute(
            "SET SESSION binlog_transaction_compression = ON",
            "UPDATE large.wide SET changed = -1 WHERE id < 10",
            "SET SESSION binlog_row_image = MINIMAL",
            "UPDATE large.wide SET changed = -2 - id",
            "DELETE FROM large.wide",
        )
        drain(server, out, report=report, start=f"{file}:{position}")
    assert_sound(out)
    table = Changes(out).read("large", "wide").select(["_change_type", "id", "changed", "c1"])
    rows = table.to_pylist()[20:]
    updates, deletes = rows[: 2 * WIDE_ROWS], rows[2 * WIDE_ROWS :]
    order = [row["id"] for row in updates[::2]]
    assert sorted(order) == list(range(WIDE_ROWS))
    assert [row["changed"] for row in updates[1::2]] == [-2 - key for key in order]
    assert [row["_change_type"] for row in updates] == ["update_preimage", "update_postimage"] * WIDE_ROWS
    assert sorted(row["id"] for row in deletes) == list(range(WIDE_ROWS))
    assert {row["_change_type"] for row in deletes} == {"delete"}
    assert {row["c1"] for row in rows} == {None}
    memory = memory_of(report)
    print({name: f"{peak / 1e6:.0f} MB" for name, peak in memory.items()})
    assert max(memory.values()) < MEMORY_LIMIT
