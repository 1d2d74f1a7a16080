"""MySQL's own tool, which reads the same stream: `--raw` writes it unchanged, `-v` prints it decoded."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from pathlib import Path

from perf.binlog import FLAVOR, ServedBinlog
from perf.measurement import Finished, Measurement, PeerError, run_command
from perf.peer import Peer
from tests.servers import UnavailableError, get_server


class _MysqlBinlog(Peer[ServedBinlog]):
    def __init__(self, work: Path) -> None:
        self._work = work

    def prepare(self) -> None:
        try:
            get_server(FLAVOR).tool("mysqlbinlog")
        except UnavailableError as error:
            raise PeerError(str(error)) from error

    def measure(self, subject: ServedBinlog) -> Measurement:
        start_up = self._read(subject, subject.empty_file)
        finished = self._read(subject, subject.file)
        usage = {"mysqlbinlog": finished.usage}
        return Measurement(finished.seconds - start_up.seconds, start_up.seconds, usage)

    def _read(self, subject: ServedBinlog, file: str) -> Finished:
        with tempfile.TemporaryDirectory(dir=self._work) as folder:
            server = subject.server
            tls = "REQUIRED" if subject.tls else "DISABLED"
            return run_command(
                [
                    *server.tool("mysqlbinlog"),
                    *("--no-defaults", "--read-from-remote-server", f"--ssl-mode={tls}"),
                    *(f"--host={server.host}", f"--port={server.port}", f"--user={server.user}"),
                    *self._mode(Path(folder)),
                    file,
                ],
                environment={"MYSQL_PWD": server.password},
            )

    @abstractmethod
    def _mode(self, folder: Path) -> list[str]:
        """Options; the output goes into `folder`."""


class MysqlBinlogRaw(_MysqlBinlog):
    """Copies the binlog without decoding it, verifying checksums or syncing to disk."""

    name = "mysqlbinlog --raw"
    remark = "undecoded, no fsync"

    def _mode(self, folder: Path) -> list[str]:
        return ["--raw", f"--result-file={folder}/"]


class MysqlBinlogVerbose(_MysqlBinlog):
    """Prints every row as commented SQL into a file."""

    name = "mysqlbinlog -v"
    remark = "decoded into text, no fsync"

    def _mode(self, folder: Path) -> list[str]:
        return ["--verbose", "--base64-output=decode-rows", f"--result-file={folder}/text"]
