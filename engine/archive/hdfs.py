"""HDFS as a file system of pyarrow, by hdfs-native, which needs nothing but its package.

pyarrow's own file system for HDFS needs Hadoop's libraries, and would start Java in each of Spark's Python
workers. hdfs-native reads Hadoop's configuration from HADOOP_CONF_DIR. It reports most failures as
`RuntimeError`; here they become `OSError`, as those of other file systems.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

SCHEME = "hdfs://"
_LONGEST_REASON = 200


def hdfs(url: str) -> tuple[pafs.FileSystem, str]:
    """The file system of a URL, and the path in it. Raises `ImportError` if hdfs-native is not installed."""
    from hdfs_native.fsspec import HdfsFileSystem

    parts = urlsplit(url)
    return pafs.PyFileSystem(_Handler(HdfsFileSystem(parts.hostname, parts.port))), parts.path


class _Handler(pafs.FSSpecHandler):  # type: ignore[misc]
    """What archives need: lists a folder, and opens files to read."""

    def get_file_info_selector(self, selector: pafs.FileSelector) -> Any:
        with _as_os_error():
            return super().get_file_info_selector(selector)

    def open_input_file(self, path: str) -> pa.NativeFile:
        with _as_os_error():
            return pa.PythonFile(_File(self.fs.open(path, "rb")), mode="r")


class _File:
    """A file that is read; the methods that pyarrow calls."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        with _as_os_error():
            return bytes(self._file.read(size))

    def close(self) -> None:
        self.closed = True


@contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        # A Java stack trace, or all that is known of each node, may follow; its line ends are escaped.
        raise OSError(str(error).partition("\\n")[0][:_LONGEST_REASON]) from error
