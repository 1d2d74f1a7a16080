"""A real S3 server: versitygw over a folder, in which a bucket is a folder of its own.

It is built from its source with Go, once, unless BINLOG_ENGINE_VERSITYGW or PATH has a program.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from . import tools
from .cache import UnavailableError, cached
from .server import POLL_SECONDS, START_SECONDS, free_port
from .watched import WatchedProcess

VERSION = "1.8.0"
MODULE = "github.com/versity/versitygw/cmd/versitygw"
VARIABLE = "BINLOG_ENGINE_VERSITYGW"
QUICK_BUILD = ("-trimpath", "-gcflags=all=-N -l", "-ldflags=-s -w")
"""Without optimizations and debugging tables, which the tests do not need: a third less processor time."""
PROGRAM = "versitygw"


def object_store_program() -> Path:
    """The program, built if need be. Raises UnavailableError."""
    chosen = os.environ.get(VARIABLE) or shutil.which(PROGRAM)
    return Path(chosen) if chosen else cached(f"{PROGRAM}-{VERSION}", _build) / PROGRAM


def _build(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder, prefix=".go-") as workspace:
        command = [*tools.go(Path(workspace)), "install", *QUICK_BUILD, f"{MODULE}@v{VERSION}"]
        tools.run(command, Path(workspace), {"GOBIN": str(folder)})


class ObjectServer:
    """The server, on a free port of 127.0.0.1. Leaving the context removes it with its buckets."""

    host = "127.0.0.1"
    access_key = "binlogtests"
    secret_key = "a-secret-of-the-tests"

    def __init__(self) -> None:
        self._program = object_store_program()
        self._folder = Path(tempfile.mkdtemp(prefix="objects-"))
        self._buckets = self._folder / "buckets"
        self._users = self._folder / "users"
        self.port = free_port(self.host)
        self._process: WatchedProcess | None = None
        self._created: set[str] = set()

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.port}"

    def environment(self, endpoint: str | None = None, **others: str) -> dict[str, str]:
        """What a client needs to reach the server, perhaps by way of another `endpoint`."""
        return {
            "AWS_ENDPOINT": endpoint or self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            **others,
        }

    def create_bucket(self, name: str) -> str:
        """Make an empty bucket; returns its URL."""
        (self._buckets / name).mkdir(parents=True)
        return f"s3://{name}"

    def bucket_folder(self, url: str) -> Path:
        """Where the server has what is below a URL."""
        return self._buckets / url.removeprefix("s3://")

    def objects(self, url: str) -> set[str]:
        """The names of all objects below a URL, as they are in the server's folder."""
        folder = self.bucket_folder(url)
        return {
            str(path.relative_to(folder))
            for path in folder.rglob("*")
            if path.is_file() and ".sgwtmp" not in path.parts
        }

    def unfinished_uploads(self, bucket: str) -> int:
        """How many uploads of several parts were begun and not completed."""
        return len(list((self._buckets / bucket / ".sgwtmp" / "multipart").glob("*/*")))

    def create_user(self, name: str, secret: str) -> None:
        """A user who may do nothing with the buckets that are there; does nothing if there is that user."""
        if name in self._created:
            return
        self._created.add(name)
        command = [str(self._program), "admin", "--access", self.access_key, "--secret", self.secret_key]
        command += ["--endpoint-url", self.endpoint, "create-user"]
        subprocess.run(
            [*command, "--access", name, "--secret", secret, "--role", "user"],
            check=True,
            capture_output=True,
        )

    def start(self) -> None:
        """Start, and return when the port is open; buckets that were there before are still there."""
        for folder in (self._buckets, self._users):
            folder.mkdir(exist_ok=True)
        command = ["env", f"ROOT_ACCESS_KEY={self.access_key}", f"ROOT_SECRET_KEY={self.secret_key}"]
        command += [str(self._program), "--quiet", "--port", f"{self.host}:{self.port}"]
        command += ["--iam-dir", str(self._users), "posix", str(self._buckets)]
        self._process = WatchedProcess(command, self._folder, self._folder / "log")
        deadline = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), 1):
                return
            if self._process.status is not None or time.monotonic() > deadline:
                log = (self._folder / "log").read_text(errors="replace")
                self.kill()
                raise UnavailableError(f"{PROGRAM} did not start: {log.strip()[-500:]}")
            time.sleep(POLL_SECONDS)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        process, self._process = self._process, None
        if process is not None:
            process.end(signal.SIGKILL)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
