"""A real HDFS: Hadoop's NameNode and a DataNode, from its jar for tests.

The jar is downloaded once. What else they need comes with PySpark: Hadoop's classes for clients, of the same
version.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from xml.sax.saxutils import escape

from . import ivy
from .cache import UnavailableError, cached
from .server import POLL_SECONDS, START_SECONDS, free_port
from .watched import WatchedProcess

_MINICLUSTER = ("org.apache.hadoop", "hadoop-client-minicluster")
_CLIENT = "hadoop-client-api-"
_NODES = "org.apache.hadoop.hdfs.server"
_SHELL = "org.apache.hadoop.fs.FsShell"
_BLOCK_BYTES = 1 << 20
"""The smallest that a NameNode accepts, so that files of tests have several blocks."""


class HdfsServer:
    """One NameNode and one DataNode on 127.0.0.1. Leaving the context removes them with all files."""

    host = "127.0.0.1"

    def __init__(self) -> None:
        self._java, self._classes = ivy.java(), _classes()
        self._folder = Path(tempfile.mkdtemp(prefix="hdfs-"))
        self._nodes: list[WatchedProcess] = []
        self.port = free_port(self.host)

    @property
    def url(self) -> str:
        return f"hdfs://{self.host}:{self.port}"

    def make_folder(self, folder: str, mode: str = "755") -> None:
        """Make a folder with a mode, and those above it; it belongs to the user who runs the servers."""
        shell = self._command(_SHELL)
        for arguments in (("-mkdir", "-p"), ("-chmod", mode)):
            subprocess.run([*shell, *arguments, folder], check=True, capture_output=True)

    def put(self, local: Path, folder: str) -> None:
        """Copy a file or a folder into a folder; waits for a DataNode that has just begun."""
        deadline = time.monotonic() + START_SECONDS
        shell = self._command(_SHELL)
        while True:
            done = subprocess.run([*shell, "-put", "-f", str(local), folder], capture_output=True, text=True)
            if not done.returncode:
                return
            if time.monotonic() > deadline:
                raise UnavailableError(f"HDFS takes no files: {done.stderr.strip()[-500:]}")

    def start(self) -> None:
        """Start both, and return when the NameNode's port is open."""
        self._configure()
        name_node = self._command(f"{_NODES}.namenode.NameNode")
        subprocess.run([*name_node, "-format", "-nonInteractive"], check=True, capture_output=True)
        for command in (name_node, self._command(f"{_NODES}.datanode.DataNode")):
            self._nodes.append(WatchedProcess(command, self._folder, self._folder / "log"))
        deadline = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), 1):
                return
            if any(node.status is not None for node in self._nodes) or time.monotonic() > deadline:
                log = (self._folder / "log").read_text(errors="replace")
                raise UnavailableError(f"HDFS did not start: {log.strip()[-500:]}")
            time.sleep(POLL_SECONDS)

    def kill_data_node(self) -> None:
        """End it at once, as a crash would: files are listed, but cannot be read."""
        self._nodes.pop().end(signal.SIGKILL)

    def kill(self) -> None:
        """End both at once."""
        while self._nodes:
            self._nodes.pop().end(signal.SIGKILL)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _command(self, program: str) -> list[str]:
        options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
        return [self._java, *options, "-cp", f"{self._folder}:{self._classes}", program]

    def _configure(self) -> None:
        anywhere = f"{self.host}:0"
        settings = {
            "fs.defaultFS": self.url,
            "dfs.namenode.name.dir": f"file://{self._folder}/names",
            "dfs.namenode.http-address": anywhere,
            "dfs.namenode.fs-limits.min-block-size": _BLOCK_BYTES,
            "dfs.blocksize": _BLOCK_BYTES,
            "dfs.replication": 1,
            "dfs.datanode.data.dir": f"file://{self._folder}/data",
            "dfs.datanode.hostname": self.host,
            **{f"dfs.datanode.{name}address": anywhere for name in ("", "ipc.", "http.")},
        }
        properties = "".join(
            f"<property><name>{name}</name><value>{escape(str(value))}</value></property>"
            for name, value in settings.items()
        )
        # Clients read the first; the second comes after Hadoop's defaults for the nodes.
        for name in ("core-site.xml", "hdfs-site.xml"):
            (self._folder / name).write_text(f"<configuration>{properties}</configuration>")


def _classes() -> str:
    """The class path without the configuration."""
    jars = ivy.spark_jars()
    (client,) = jars.glob(f"{_CLIENT}*.jar")
    version = client.stem.removeprefix(_CLIENT)
    servers = cached(f"hadoop-{version}", lambda folder: _download(version, folder))
    return f"{servers}/*:{jars}/*"


def _download(version: str, folder: Path) -> None:
    ivy.fetch(*_MINICLUSTER, version, folder)
