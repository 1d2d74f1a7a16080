"""Programs that dump tables as SQL: MySQL's own mysqldump, and mydumper, which uses several connections."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from perf.binlog import FLAVOR
from perf.measurement import Measurement, PeerError, run_command
from perf.peers.rows_reader import RowsReader
from perf.stored_rows import ServedRows
from perf.workload import DATABASE
from tests.servers import UnavailableError, get_server
from tests.servers.cache import cached
from tests.servers.debian import unpack
from tests.servers.loader import loader_command

_CHUNK_ROWS = 100_000
"""Rows that mydumper reads with one statement."""


class _Dump(RowsReader):
    def __init__(self, work: Path, connections: int) -> None:
        super().__init__(connections)
        self._work = work

    @abstractmethod
    def command(self, subject: ServedRows, folder: Path) -> Sequence[str | Path]:
        """The command that dumps the rows into files in an existing folder."""

    def environment(self) -> Mapping[str, str]:
        """Environment variables for the command."""
        return {}

    def check(self, subject: ServedRows, folder: Path) -> None:
        """Raise PeerError if the dump in `folder` is not complete."""

    def read(self, subject: ServedRows) -> Measurement:
        with tempfile.TemporaryDirectory(dir=self._work) as folder:
            finished = run_command(self.command(subject, Path(folder)), environment=self.environment())
            self.check(subject, Path(folder))
        return Measurement(finished.seconds, processes={self.name: finished.usage})


class Mysqldump(_Dump):
    """One transaction, one file."""

    name = "mysqldump"
    remark = "SQL, one connection, no fsync"

    def prepare(self) -> None:
        try:
            get_server(FLAVOR).tool("mysqldump")
        except UnavailableError as error:
            raise PeerError(str(error)) from error

    def command(self, subject: ServedRows, folder: Path) -> Sequence[str | Path]:
        server = subject.server
        return [
            *server.tool("mysqldump"),
            *("--no-defaults", "--ssl-mode=DISABLED", "--single-transaction", "--quick"),
            *("--set-gtid-purged=OFF", "--no-tablespaces", "--hex-blob"),
            *(f"--host={server.host}", f"--port={server.port}", f"--user={server.user}"),
            *(f"--result-file={folder}/dump.sql", DATABASE),
        ]

    def check(self, subject: ServedRows, folder: Path) -> None:
        with (folder / "dump.sql").open("rb") as dump:
            dump.seek(-100, 2)
            if b"-- Dump completed" not in dump.read():
                raise PeerError("its dump is not complete")


class Mydumper(_Dump):
    """Debian's build. All connections read the same state of the tables, which are locked for an instant."""

    name = "mydumper"
    remark = "SQL, no fsync"

    def prepare(self) -> None:
        self._root = cached("perf-mydumper", lambda folder: unpack("sid", ["mydumper"], folder))

    def environment(self) -> Mapping[str, str]:
        (plugins,) = self._root.glob("usr/lib/*/libmariadb3/plugin")
        return {"MARIADB_PLUGIN_DIR": str(plugins)}

    def warm_up(self, subject: ServedRows) -> None:
        """Counts the rows of a dump: it ends with status 0 even if it has left a table out."""
        with tempfile.TemporaryDirectory(dir=self._work) as folder:
            run_command(self.command(subject, Path(folder)), environment=self.environment())
            rows = sum(_rows_in(file) for file in Path(folder).glob(f"{DATABASE}.*.sql"))
        if rows != subject.stored.rows:
            raise PeerError(f"it dumped {rows} rows, but the tables have {subject.stored.rows}")

    def command(self, subject: ServedRows, folder: Path) -> Sequence[str | Path]:
        server = subject.server
        return [
            *loader_command(self._root),
            self._root / "usr/bin/mydumper",
            *("--host", server.host, "--port", str(server.port), "--user", server.user),
            *("--database", DATABASE, "--threads", str(self.connections), "--outputdir", folder),
            *("--rows", str(_CHUNK_ROWS), "--trx-consistency-only"),
        ]


def _rows_in(dump: Path) -> int:
    """Rows of a dump by mydumper, which writes each on a line of its own."""
    with dump.open("rb") as lines:
        return sum(line.startswith((b"(", b",(")) for line in lines)
