"""One real database server: init, start, stop, in a folder of its own on a free port of 127.0.0.1.

A data folder is a copy of an initialised template, so a start takes about a second; ready is when a client
can log in. The server does not outlive the test run, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pymysql

from .cache import UnavailableError
from .installations import Installation
from .watched import WatchedProcess

START_SECONDS = 60
POLL_SECONDS = 0.02

# Below the range that the kernel hands out to outgoing connections, so that a restart finds its port still
# free.
PORTS = range(20_000, 32_000)

OPTIONS: dict[str, str | None] = {
    "server_id": "1",
    "log_bin": "binlog",
    "binlog_format": "ROW",
    "sync_binlog": "0",
    "innodb_flush_log_at_trx_commit": "0",
    "innodb_doublewrite": "0",
    "innodb_buffer_pool_size": "64M",
    # Each would take some hundreds of the asynchronous requests that the machine allows at a time.
    "innodb_use_native_aio": "OFF",
    "max_allowed_packet": "1G",
    "local_infile": "ON",
    "secure_file_priv": "",
    "performance_schema": "OFF",
    "character_set_server": "utf8mb4",
    "default_time_zone": "+00:00",
}

GTIDS = {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}
"""Options that give MySQL's transactions GTIDs."""

OWN_DATABASES = frozenset({"information_schema", "mysql", "performance_schema", "sys"})


def start_options(installation: Installation) -> list[str]:
    """Options that every start of the installation needs, whatever the data folder."""
    options = ["--no-defaults", *installation.options]
    if os.geteuid() == 0:
        options.append("--user=root")
    if not installation.flavor.is_mariadb:
        options.append("--loose-mysqlx=0")  # MySQL 5 has no such option
    return options


class Server:
    """A server of one flavor. Options are the server's own, by name; None as a value gives the bare option.

    `stop` and `kill` keep the data folder, so `start` goes on where the server was; `destroy`, which leaving
    the context manager calls, removes it. Not for use by several threads at once, `connect` excepted.
    """

    host = "127.0.0.1"
    user = "root"
    password = ""

    def __init__(
        self, flavor: str, installation: Installation, template: Path, options: Mapping[str, str | None]
    ) -> None:
        self.flavor = flavor
        self.installation = installation
        self.port = free_port()
        self.options = OPTIONS | _normalised(options)
        self._template = template
        self._folder = Path(tempfile.gettempdir()) / f"binlog-engine-{flavor}-{os.getpid()}-{self.port}"
        self._process: WatchedProcess | None = None
        self._connection: Any = None

    def __repr__(self) -> str:
        return f"<Server {self.flavor} {self.installation.version} on {self.host}:{self.port}>"

    @property
    def data_directory(self) -> Path:
        return self._folder / "data"

    @property
    def socket(self) -> str:
        return str(self._folder / "mysql.sock")

    @property
    def log(self) -> Path:
        """The server's error log."""
        return self._folder / "error.log"

    @property
    def pid(self) -> int:
        """The server's process id. Raises RuntimeError when it is not running."""
        if self._process is None:
            raise RuntimeError(f"{self!r} is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.status is None

    @property
    def has_gtids(self) -> bool:
        """Whether transactions have GTIDs; older versions of MySQL give them none unless told to."""
        return self.installation.flavor.is_mariadb or self.query("SELECT @@gtid_mode") == [("ON",)]

    def init(self) -> None:
        """Make the data folder, unless it is there."""
        if not self.data_directory.exists():
            self._folder.mkdir(mode=0o700, exist_ok=True)
            (self._folder / "tmp").mkdir(exist_ok=True)
            shutil.copytree(self._template, self.data_directory)

    def start(self, **options: str | None) -> None:
        """Start, and return when clients can log in; `options` are added to the server's for good.

        Raises UnavailableError, with the end of the error log, when the server does not come up.
        """
        if self.running:
            raise RuntimeError(f"{self!r} is running already")
        self.kill()  # clears up after a server that died by itself or by another's hand
        self.options |= _normalised(options)
        self.init()
        self._process = WatchedProcess(self._command(), self._folder, self.log)
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Shut down cleanly (SIGTERM), and wait for it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill (SIGKILL), as a crash would, and wait for it."""
        self._end(signal.SIGKILL)

    def restart(self, **options: str | None) -> None:
        """Stop cleanly and start again on the same port and data; `options` are added for good."""
        self.stop()
        self.start(**options)

    def destroy(self) -> None:
        """Kill the server if it runs, and remove its folder."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        if not self.running:
            self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.destroy()

    def connect(self, **arguments: Any) -> Any:
        """A new pymysql connection, as root with autocommit unless `arguments` say otherwise."""
        return pymysql.connect(
            **{
                "host": self.host,
                "port": self.port,
                "user": self.user,
                "password": self.password,
                "autocommit": True,
                "charset": "utf8mb4",
                "local_infile": True,
                "max_allowed_packet": 1 << 30,
                # MySQL 5.6 knows no version of TLS that pymysql would take.
                "ssl_disabled": True,
                **arguments,
            }
        )

    @contextlib.contextmanager
    def cursor(self) -> Iterator[Any]:
        """A cursor of the connection that is kept open between calls."""
        if self._connection is None or not self._connection.open:
            self._connection = self.connect()
        with self._connection.cursor() as cursor:
            yield cursor

    def query(self, sql: str, *arguments: Any) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows; each `%s` in it is replaced by one of `arguments`."""
        with self.cursor() as cursor:
            cursor.execute(sql, arguments or None)
            return list(cursor.fetchall())

    def execute(self, *statements: str) -> None:
        """Run several statements, one after the other."""
        for statement in statements:
            self.query(statement)

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement with each of `rows` for its `%s`; an INSERT sends many rows at once."""
        with self.cursor() as cursor:
            cursor.executemany(sql, list(rows))

    def reset(self) -> None:
        """Drop all databases but the server's own, begin a binlog file, and end the session of `query`."""
        self._end_session()
        self.query("SET foreign_key_checks = 0")
        for (name,) in self.query("SHOW DATABASES"):
            if name not in OWN_DATABASES:
                self.query(f"DROP DATABASE `{name.replace('`', '``')}`")
        self.flush_binlog()
        self._end_session()

    def binlogs(self) -> list[Path]:
        """The server's binlog files, in order."""
        return [self.data_directory / row[0] for row in self.query("SHOW BINARY LOGS")]

    def flush_binlog(self) -> Path:
        """Close the current binlog file and begin the next; returns the one that is now complete."""
        complete = self.binlogs()[-1]
        self.query("FLUSH BINARY LOGS")
        return complete

    def create_replication_user(
        self,
        name: str,
        password: str,
        plugin: str | None = None,
        privileges: str = "REPLICATION SLAVE, REPLICATION CLIENT, SELECT",
    ) -> None:
        """Create (anew) a user who may follow the binlog and read information_schema.

        `plugin` is an authentication plugin, None the server's default. MariaDB loads it if need be; MySQL
        5.6 cannot name mysql_native_password, which is its default.
        """
        flavor = self.installation.flavor
        if plugin is None or (flavor.series, plugin) == ("5.6", "mysql_native_password"):
            identified = "BY %s"
        elif flavor.is_mariadb:
            identified = f"VIA {plugin} USING PASSWORD(%s)"
            if not self.query("SELECT 1 FROM information_schema.plugins WHERE plugin_name = %s", plugin):
                self.query(f"INSTALL PLUGIN {plugin} SONAME 'auth_{plugin}.so'")
        else:
            identified = f"WITH {plugin} BY %s"
        user = f"'{name}'@'%'"
        if self.query("SELECT 1 FROM mysql.user WHERE User = %s AND Host = '%%'", name):
            self.query(f"DROP USER {user}")
        self.query(f"CREATE USER {user.replace('%', '%%')} IDENTIFIED {identified}", password)
        self.query(f"GRANT {privileges} ON *.* TO {user}")

    def tool(self, name: str) -> list[str]:
        """The argv prefix that runs a client tool of the server's own. MariaDB's go by MySQL's names too."""
        return self.installation.tool(name)

    def log_tail(self, lines: int = 30) -> str:
        """The end of the server's error log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def _command(self) -> list[str]:
        own = {
            "datadir": str(self.data_directory),
            "tmpdir": str(self._folder / "tmp"),
            "socket": self.socket,
            "pid_file": str(self._folder / "server.pid"),
            "bind_address": self.host,
            "port": str(self.port),
        }
        options = (self.options | own).items()
        words = [f"--{name}" if value is None else f"--{name}={value}" for name, value in options]
        return [*self.installation.command, *start_options(self.installation), *words]

    def _wait_until_ready(self, process: WatchedProcess) -> None:
        """Log in through the socket: a file of our own, where a port might turn out to be another's."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._connection = self.connect(unix_socket=self.socket, connect_timeout=5)
                return
            except (pymysql.err.OperationalError, pymysql.err.InternalError) as error:
                if process.status is not None:
                    reason = f"it ended with status {process.status}"
                elif time.monotonic() > deadline:
                    reason = f"no client could log in within {START_SECONDS} s ({error})"
                else:
                    time.sleep(POLL_SECONDS)
                    continue
            raise UnavailableError(f"{self!r} did not start: {reason}; its log ends:\n{self.log_tail()}")

    def _end(self, how: signal.Signals) -> None:
        self._end_session()
        process, self._process = self._process, None
        if process is not None:
            process.end(how)

    def _end_session(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.open:
            with contextlib.suppress(pymysql.err.Error):
                connection.close()


def _normalised(options: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name.replace("-", "_"): value for name, value in options.items()}


def free_port(host: str = "127.0.0.1") -> int:
    """A port below the range of outgoing connections that no program listens on."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
