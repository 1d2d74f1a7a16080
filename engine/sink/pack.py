"""Writes a pack: the small data files of a commit as parts of one file (`engine.output.data_file_names`).

Each part is a whole Arrow IPC file, which has waited in memory until then. So a commit of
hundreds of tables creates, flushes and uploads one file for them.
"""

from __future__ import annotations

from pathlib import Path

from engine.output.data_file_names import PART_ALIGNMENT, Part, pack_path
from engine.sink.growing_file import GrowingFile


class Pack:
    """The pack with that number of the commit number `commit` in the folder `out`."""

    def __init__(self, out: Path, commit: int, epoch: int, number: int) -> None:
        self._path = pack_path(commit, epoch, number)
        # Nothing lists a checksum of the pack: each part has its own.
        self.content = GrowingFile(out / self._path, has_checksum=False)
        """All of which waits in memory."""

    def add(self, file: GrowingFile) -> str:
        """Append a finished file that only waits in memory; returns the path of the part."""
        padding = bytes(-self.content.size % PART_ALIGNMENT)
        offset = self.content.size + len(padding)
        self.content.hold(padding, *file.take())
        return Part(self._path, offset, file.size).path
