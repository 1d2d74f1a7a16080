"""A value of 40 MB and a transaction of 300 MB: they arrive whole, and no process needs 500 MB for them.

So does a transaction that the server has compressed (`binlog_transaction_compression`).

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

    memory = {
        name: usage["peak_memory"] for name, usage in json.loads(report.read_text())["processes"].items()
    }
    print(filled.flavor, {name: f"{peak / 1e6:.0f} MB" for name, peak in memory.items()})
    assert {"supervisor", "network", "decoder-0", "decoder-1", "sink"} <= memory.keys()
    assert max(memory.values()) < MEMORY_LIMIT
