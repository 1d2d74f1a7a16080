"""go-mysql, the usual binlog library for Go; by default it does not verify checksums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perf.binlog import ServedBinlog
from perf.peers.program import PASSES, WARM_UP_SECONDS, Program, built

_SOURCES = Path(__file__).with_name("go")
_PASSES = (str(WARM_UP_SECONDS), str(PASSES))


class _GoMysql(Program):
    name = "go-mysql"
    process = "go"

    def prepare(self) -> None:
        folder = built("go-mysql", _SOURCES, "go", ["go", "build", "-o", "read-binlog", "."])
        self._program = folder / "read-binlog"


class GoMysqlFile(_GoMysql):
    """From the file, on one core."""

    remark = "checksums not verified"
    one_core = True

    def environment(self) -> Mapping[str, str]:
        return {"GOMAXPROCS": "1"}

    def command(self, subject: ServedBinlog) -> Sequence[str | Path]:
        return [self._program, *_PASSES, "file", subject.binlog.path]


class GoMysqlServer(_GoMysql):
    """From the server; rows are counted and dropped."""

    remark = "decoded and dropped, checksums not verified"

    def command(self, subject: ServedBinlog) -> Sequence[str | Path]:
        server, rows = subject.server, str(subject.binlog.rows)
        where = [server.host, str(server.port), server.user, subject.file]
        return [self._program, *_PASSES, "server", *where, rows]
