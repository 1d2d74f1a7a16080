"""Bounds what the files that are being written take: memory for content that waits, and descriptors.

A limit applies to all files together, since their number is that of the tables with changes.
"""

from __future__ import annotations

from engine.sink.growing_file import GrowingFile

MOST_WAITING_BYTES = 48 << 20
"""In memory; beyond it all waiting content is written. A pack is begun at less (`engine.sink.staging`), so
this happens only inside a transaction."""
MOST_DESCRIPTORS = 128
"""Beyond it the file that was not written to for the longest time is closed until it is written to again. Two
commits may have so many, one that is under way and the next; well below the usual limit of descriptors."""


class OpenFiles:
    """The files to which more may be written."""

    def __init__(self) -> None:
        self._waiting: dict[GrowingFile, int] = {}
        """The bytes that wait for each."""
        self._waiting_bytes = 0
        self._with_descriptor: dict[GrowingFile, None] = {}
        """The one that was written to last comes last."""

    @property
    def waiting_bytes(self) -> int:
        """What waits in memory, of all files."""
        return self._waiting_bytes

    def written(self, file: GrowingFile) -> None:
        """More was written to a file. Raises `OutputError`."""
        self._waiting_bytes += file.waiting - self._waiting.get(file, 0)
        self._waiting[file] = file.waiting
        self._bound_descriptors(file)
        if self._waiting_bytes > MOST_WAITING_BYTES:
            waiting, self._waiting, self._waiting_bytes = self._waiting, {}, 0
            for other in waiting:
                other.write_out()
                self._bound_descriptors(other)

    def closed(self, file: GrowingFile) -> None:
        """A file has nothing that waits and no descriptor any more, or will not be written to."""
        self._waiting_bytes -= self._waiting.pop(file, 0)
        self._with_descriptor.pop(file, None)

    def _bound_descriptors(self, latest: GrowingFile) -> None:
        if latest.has_descriptor:
            self._with_descriptor.pop(latest, None)
            self._with_descriptor[latest] = None
            if len(self._with_descriptor) > MOST_DESCRIPTORS:
                oldest = next(iter(self._with_descriptor))
                oldest.release()
                self.closed(oldest)
