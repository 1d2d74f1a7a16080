"""Writes whole pages to a file past the page cache, straight from the memory that they are in.

That is an offer to the file system, which may decline it for a file or for some memory; then nothing is
written, and the caller writes as usual.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

from engine.output.direct_io import DIRECT_PAGE
from engine.pipeline.messages import Frame


class DirectWriter:
    """For one file, which is there. Raises `OSError` for what other writes fail of, too."""

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        if sys.platform == "linux":
            try:
                self._descriptor = os.open(path, os.O_WRONLY | os.O_DIRECT)
            except OSError as error:
                _tolerate(error)

    def write(self, content: Frame, offset: int) -> int:
        """Write at `offset` as much as can be written so, from the beginning on; how many bytes that is."""
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
        """Nothing is written any more; harmless when done before."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _tolerate(error: OSError) -> None:
    """Raise the error, unless it only means that this cannot be written past the page cache."""
    if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
        raise error
