"""The rows that a server has before anything is measured: what snapshots and dumps read.

A real server writes the rows of a workload once, outside of its binlog. Its data folder is kept in the user's
cache; a copy of it is what the measured server starts with. The buffer pool has room for all rows, so that no
program waits for the disk to read them.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perf.binlog import FLAVOR, SESSIONS, live_server
from perf.workload import DATABASE, HELPERS, Workload
from tests.servers import Server
from tests.servers.cache import cached
from tests.servers.installations import installation

_OPTIONS: dict[str, str | None] = {
    "gtid_mode": "ON",
    "enforce_gtid_consistency": "ON",
    "innodb_buffer_pool_size": "2G",
    "innodb_redo_log_capacity": "128M",
}
_NOT_KEPT = ("auto.cnf", "binlog.*")
"""Files that each server makes for itself."""


@dataclass(frozen=True)
class StoredRows:
    """A data folder with the rows of a workload at a scale."""

    workload: Workload
    scale: float
    data: Path

    @property
    def rows(self) -> int:
        """Of all tables."""
        return self.workload.scaled_units(self.scale) * self.workload.rows_per_unit

    @property
    def size(self) -> int:
        """Bytes of the tables' files."""
        return sum(file.stat().st_size for file in (self.data / DATABASE).iterdir())


@dataclass(frozen=True)
class ServedRows:
    """Stored rows on a running server."""

    stored: StoredRows
    server: Server

    @property
    def tables(self) -> list[str]:
        """Names of the tables."""
        return [name for (name,) in self.server.query(f"SHOW TABLES FROM {DATABASE}")]


def stored_rows(workload: Workload, scale: float = 1.0) -> StoredRows:
    """The rows; written first if they are not cached. Raises UnavailableError if there is no server."""
    identity = repr((workload, scale, installation(FLAVOR).version, _OPTIONS)).encode()
    name = f"perf-{workload.name}-rows-{scale:g}-{hashlib.sha256(identity).hexdigest()[:8]}"
    folder = cached(name, lambda partial: _write(workload, scale, partial / "data"))
    return StoredRows(workload, scale, folder / "data")


@contextmanager
def served_rows(stored: StoredRows) -> Iterator[ServedRows]:
    """Start a real server with the rows."""
    with Server(FLAVOR, installation(FLAVOR), stored.data, _OPTIONS) as server:
        yield ServedRows(stored, server)


def _write(workload: Workload, scale: float, data: Path) -> None:
    with live_server(workload, _OPTIONS) as server:
        units = workload.scaled_units(scale)
        bounds = [units * number // SESSIONS for number in range(SESSIONS + 1)]
        with ThreadPoolExecutor(SESSIONS) as pool:
            list(pool.map(partial(_load, server), bounds, bounds[1:]))
        tables = [name for (name,) in server.query("SHOW TABLES")]
        # So that every program finds the same estimates of the tables' sizes.
        server.execute(*(f"ANALYZE TABLE {table}" for table in tables), f"DROP DATABASE {HELPERS}")
        server.stop()
        shutil.copytree(server.data_directory, data, ignore=shutil.ignore_patterns(*_NOT_KEPT))


def _load(server: Server, first: int, last: int) -> None:
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute(f"CALL {HELPERS}.write_units(%s, %s)", (first, last))
