"""mysql-binlog-connector-java, the parser of Debezium: JSON is left as bytes, checksums are not verified."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from perf.binlog import ServedBinlog
from perf.measurement import PeerError
from perf.peers.program import PASSES, Program, built

_SOURCES = Path(__file__).with_name("java")


class _ConnectorJava(Program):
    name = "mysql-binlog-connector-java"
    process = "java"

    def prepare(self) -> None:
        self._java = _java()
        self._folder = built(
            "connector-java",
            _SOURCES,
            "mvn",
            ["mvn", "-q", "-B", "compile", "dependency:copy-dependencies", "-DoutputDirectory=target/lib"],
        )

    def _command(self, *arguments: str | Path) -> Sequence[str | Path]:
        classes = f"{self._folder}/target/classes:{self._folder}/target/lib/*"
        return [self._java, *self._flags(), "-cp", classes, "ReadBinlog", str(PASSES), *arguments]

    def _flags(self) -> list[str]:
        return []


class ConnectorJavaFile(_ConnectorJava):
    """From the file, on one core."""

    remark = "warm; JSON left raw, checksums not verified"
    one_core = True

    def command(self, subject: ServedBinlog) -> Sequence[str | Path]:
        return self._command("file", subject.binlog.path)

    def _flags(self) -> list[str]:
        # What it is best with on one core.
        return ["-XX:+UseSerialGC"]


class ConnectorJavaServer(_ConnectorJava):
    """From the server; rows are counted and dropped."""

    remark = "warm; decoded and dropped, checksums not verified"

    def command(self, subject: ServedBinlog) -> Sequence[str | Path]:
        server = subject.server
        return self._command("server", server.host, str(server.port), server.user, subject.file)


def _java() -> Path:
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin/java" if home else Path(shutil.which("java") or "java")
    if not java.exists():
        raise PeerError("this machine has no Java")
    return java
