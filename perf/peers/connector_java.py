"""mysql-binlog-connector-java, the parser of Debezium: JSON is left as bytes, checksums are not verified."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perf.binlog import ServedBinlog
from perf.peers.java import java, java_classes
from perf.peers.program import PASSES, WARM_UP_SECONDS, Program

_SOURCES = Path(__file__).with_name("java")


class _ConnectorJava(Program):
    name = "mysql-binlog-connector-java"
    process = "java"

    def prepare(self) -> None:
        self._java = java()
        self._classes = java_classes("connector-java", _SOURCES)

    def _command(self, *arguments: str | Path) -> Sequence[str | Path]:
        passes = [str(WARM_UP_SECONDS), str(PASSES)]
        return [self._java, *self._flags(), "-cp", self._classes, "ReadBinlog", *passes, *arguments]

    def _flags(self) -> list[str]:
        return []


class ConnectorJavaFile(_ConnectorJava):
    """From the file, on one core."""

    remark = "warm; JSON and TEXT left raw, checksums not verified"
    one_core = True
    values = "file"

    def command(self, subject: ServedBinlog) -> Sequence[str | Path]:
        return self._command(self.values, subject.binlog.path)

    def _flags(self) -> list[str]:
        # The fastest collector on one core.
        return ["-XX:+UseSerialGC"]


class ConnectorJavaText(ConnectorJavaFile):
    """The same, but JSON and TEXT are converted to strings, as in Debezium; the engine does as much."""

    name = "connector-java with text"
    remark = "the same, with JSON and TEXT as strings"
    values = "file-text"


class ConnectorJavaServer(_ConnectorJava):
    """From the server; rows are counted and dropped."""

    remark = "warm; decoded and dropped, checksums not verified"

    def command(self, subject: ServedBinlog) -> Sequence[str | Path]:
        server = subject.server
        return self._command("server", server.host, str(server.port), server.user, subject.file)
