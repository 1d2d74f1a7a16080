"""A workload's binlog: written once by a real server, then kept in the user's cache folder.

The cache holds the complete binlog file and the server's catalog entries of the tables, which is all that the
peers need; a later run starts within a second, for any size.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from engine.binlog.table_definition import pack
from engine.net.client.connection import Connection
from engine.net.client.table_columns import describe_table
from perf.workload import DATABASE, HELPERS, NUMBERS, Workload
from tests.servers import Server, get_server
from tests.servers.cache import cached

FLAVOR = "mysql-9.7"
SESSIONS = 4
_CATALOG = "columns.json"


def binlog_name(number: int) -> str:
    """A server's name for the binlog file of that number, counted from 1."""
    return f"binlog.{number:06d}"


_NAME = binlog_name(1)
_OPTIONS: dict[str, str | None] = {
    "gtid_mode": "ON",
    "enforce_gtid_consistency": "ON",
    "innodb_buffer_pool_size": "512M",
    "innodb_redo_log_capacity": "1G",
    "binlog_cache_size": "16M",
    "max_binlog_size": "1G",
}


@dataclass(frozen=True)
class Binlog:
    """A binlog file with the changes of a workload at a scale."""

    workload: Workload
    scale: float
    path: Path

    @property
    def rows(self) -> int:
        """Rows changed; an update counts once."""
        return self.workload.scaled_units(self.scale) * self.workload.rows_per_unit

    @property
    def change_rows(self) -> int:
        """Change rows that the engine emits for it."""
        workload = self.workload
        return workload.scaled_units(self.scale) * (workload.rows_per_unit + workload.updates_per_unit)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.path.stat().st_size


def binlog_of(workload: Workload, scale: float = 1.0) -> Binlog:
    """The binlog; written first if it is not cached. Raises UnavailableError if there is no server."""
    version = get_server(FLAVOR).installation.version
    identity = repr((workload, scale, version, _OPTIONS, _CATALOG)).encode()
    name = f"perf-{workload.name}-{scale:g}-{hashlib.sha256(identity).hexdigest()[:8]}"
    folder = cached(name, lambda partial: _write(workload, scale, partial))
    return Binlog(workload, scale, folder / _NAME)


@dataclass(frozen=True)
class ServedBinlog:
    """A binlog on a running server. The server's last file, after it, is almost empty."""

    binlog: Binlog
    server: Server
    tls: bool = False
    """Whether peers read it over TLS."""

    @property
    def file(self) -> str:
        """Its name on the server."""
        return _NAME

    @property
    def empty_file(self) -> str:
        """The name of a file without changes: the time to read it is start-up time."""
        return self.server.binlogs()[-1].name


def catalog_of(binlog: Path) -> Mapping[str, bytes]:
    """`database.table` → packed columns (`engine.binlog.table_definition`); empty for others."""
    kept = binlog.with_name(_CATALOG)
    packed = json.loads(kept.read_text()) if kept.exists() else {}
    return {table: base64.b64decode(columns) for table, columns in packed.items()}


@contextmanager
def served(binlog: Binlog, *, tls: bool = False) -> Iterator[ServedBinlog]:
    """Start a real server with the binlog as its first file, and the tables (empty) in its catalog.

    The server always offers TLS, with the protocol and cipher on which it and OpenSSL agree.
    """

    def place(folder: Path) -> Sequence[str]:
        shutil.copyfile(binlog.path, folder / _NAME)
        return [_NAME]

    with server_with_files(binlog.workload, place) as server:
        yield ServedBinlog(binlog, server, tls)


@contextmanager
def server_with_files(workload: Workload, place: Callable[[Path], Sequence[str]]) -> Iterator[Server]:
    """A real server that starts with the binlog files that `place` writes into its folder and returns in
    order.

    The workload's tables exist and are empty.
    """
    server = get_server(FLAVOR, {**_OPTIONS, **workload.server_options})
    server.init()
    names = place(server.data_directory)
    (server.data_directory / "binlog.index").write_text("".join(f"./{name}\n" for name in names))
    with server:
        make_tables(server, workload)
        yield server


@contextmanager
def live_server(workload: Workload, options: Mapping[str, str | None] = _OPTIONS) -> Iterator[Server]:
    """A real server with the workload's tables and its procedure `write_units`."""
    with get_server(FLAVOR, {**options, **workload.server_options}) as server:
        make_tables(server, workload)
        make_helpers(server, workload)
        yield server


def _write(workload: Workload, scale: float, folder: Path) -> None:
    with live_server(workload) as server:
        units = workload.scaled_units(scale)
        sessions = 1 if workload.one_transaction else SESSIONS
        bounds = [units * number // sessions for number in range(sessions + 1)]
        with ThreadPoolExecutor(sessions) as pool:
            list(pool.map(partial(_load, server, workload), bounds, bounds[1:]))
        complete = server.flush_binlog()
        if complete.name != _NAME:
            raise ValueError(
                f"the workload {workload.name} at scale {scale:g} fills more than one binlog file"
            )
        shutil.copyfile(complete, folder / _NAME)
        (folder / _CATALOG).write_text(json.dumps(_describe(server)))


def _load(server: Server, workload: Workload, first: int, last: int) -> None:
    autocommit = not workload.one_transaction
    with closing(server.connect(autocommit=autocommit)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CALL {HELPERS}.write_units(%s, %s)", (first, last))
        connection.commit()


def make_tables(server: Server, workload: Workload) -> None:
    """Make the workload's tables; nothing of this connection is logged from here on."""
    server.execute(
        "SET sql_log_bin = 0",
        f"CREATE DATABASE IF NOT EXISTS {DATABASE}",
        f"USE {DATABASE}",
        *workload.tables,
    )


def make_helpers(server: Server, workload: Workload) -> None:
    """Make the workload's procedure `write_units`, and fill its tables, after `make_tables`."""
    server.execute(
        f"CREATE DATABASE {HELPERS}",
        f"CREATE TABLE {HELPERS}.numbers (n INT PRIMARY KEY)",
        "SET cte_max_recursion_depth = 1000000",
        f"INSERT INTO {HELPERS}.numbers WITH RECURSIVE counting (n) AS "
        f"(SELECT 0 UNION ALL SELECT n + 1 FROM counting WHERE n < {NUMBERS - 1}) SELECT n FROM counting",
        *workload.prepare,
        f"""
        CREATE PROCEDURE {HELPERS}.write_units(first BIGINT, last BIGINT)
        BEGIN
            DECLARE unit BIGINT DEFAULT first;
            WHILE unit < last DO
                {workload.load};
                SET unit = unit + 1;
            END WHILE;
        END
        """,
    )


def _describe(server: Server) -> dict[str, str]:
    tables = [name for (name,) in server.query("SHOW TABLES")]
    with Connection.open(server.host, server.port, server.user, server.password) as connection:
        described = {table: describe_table(connection, DATABASE, table) for table in tables}
    return {
        f"{DATABASE}.{table}": base64.b64encode(pack(definition.columns)).decode()
        for table, definition in described.items()
        if definition is not None
    }
