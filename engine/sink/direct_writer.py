"""Writes whole pages to a file with direct I/O, which bypasses the page cache and does not copy them.

A file system may refuse direct I/O for a file or a buffer; then nothing is written, and the caller writes
through the page cache.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

from engine.output.direct_io import DIRECT_PAGE
from engine.pipeline.message import Frame


class DirectWriter:
    """Direct I/O to one existing file. Raises `OSError`, except if direct I/O is refused."""

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        if sys.platform == "linux":
            try:
                self._descriptor = os.open(path, os.O_WRONLY | os.O_DIRECT)
            except OSError as error:
                _tolerate(error)

    def write(self, content: Frame, offset: int) -> int:
        """Write `content` at `offset` if both are whole pages; returns how many of its bytes were written."""
        done = 0
        while self._descriptor is not None and done < len(content):
            if offset % DIRECT_PAGE or len(content) % DIRECT_PAGE or done % DIRECT_PAGE:
                break
            try:
                written = os.pwrite(self._descriptor, content[done:], offset + done)
            except OSError as error:
                _tolerate(error)
                self.close()
            else:
                done += written
                if not written:
                    break
        return done

    def close(self) -> None:
        """Close the file; does nothing if it is closed."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _tolerate(error: OSError) -> None:
    """Raise the error, except if it means that the file system refuses direct I/O."""
    if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
        raise error
