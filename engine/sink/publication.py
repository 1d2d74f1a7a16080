"""What becomes of the files that the sink has written: they are made durable, where readers find them.

The sink writes all data files to a local folder. For an output in a folder that is the output itself, and
files are flushed to disk; for one in an object store it is the spool, from which files are uploaded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TypeVar

from engine.output.caught_up import write_caught_up
from engine.output.commit import DataFile
from engine.output.data_file_names import file_of
from engine.output.files import OutputError, sync, writing
from engine.output.storage import OutputPlace, StoreUrl, storage_of
from engine.output.working_folder import working_folder
from engine.sink.cached_files import CachedFiles
from engine.sink.growing_file import GrowingFile
from engine.sink.staging import ROLL_BYTES

_Item = TypeVar("_Item")
_AT_ONCE = 8
"""Files that are flushed or uploaded at a time; uploads, each with its file in memory, are half as many."""
_OBJECT_BYTES = 64 << 20
"""The size from which on the next object is begun. An object is one PUT: its content is in memory meanwhile,
is sent again as a whole if that fails, and readers get it as a whole."""
_NOTE_SECONDS = 10.0
"""How often an object says that everything was committed: a PUT has a price."""


class Publication(ABC):
    """Takes the files of one output, commit by commit. Methods raise `OutputError`."""

    folder: Path
    """Where data files are written."""
    roll_bytes = ROLL_BYTES
    """The size from which on a table's next file is begun."""
    bounds_backlog: bool
    """Whether no more may be written than one further commit while a commit takes long."""

    @abstractmethod
    def written(self, files: Sequence[GrowingFile]) -> None:
        """Files are finished and will not be changed before their commit: write what waits of them."""

    @abstractmethod
    def publish(self, files: Sequence[DataFile]) -> None:
        """Make the files of a commit durable where readers find them; `written` was called for all."""

    @abstractmethod
    def committed(self, files: Sequence[DataFile]) -> None:
        """The log has the files' commit."""

    @abstractmethod
    def withdraw(self) -> None:
        """Remove what was published and is not in the log, and never will be."""

    @abstractmethod
    def note_caught_up(self, moment_us: int) -> None:
        """Everything that the source had at that time is committed, µs since the epoch."""

    @abstractmethod
    def close(self) -> None:
        """End the threads."""


def publication_of(out: OutputPlace) -> Publication:
    """The publication for an output, by the kind of its place."""
    return Uploads(out) if isinstance(out, StoreUrl) else Flushes(out)


class Flushes(Publication):
    """Flushes files and their folders to disk, concurrently: a journaling file system combines flushes."""

    bounds_backlog = False

    def __init__(self, out: Path) -> None:
        self.folder = out
        self._threads = ThreadPoolExecutor(_AT_ONCE, "flush")
        self._durable_folders: set[Path] = set()
        """Tables' folders whose names are durable in the output folder."""
        self._cached_files = CachedFiles()
        self._under_way: dict[Path, Future[None]] = {}
        """By file that no commit in the log lists."""

    def written(self, files: Sequence[GrowingFile]) -> None:
        # One list per thread: submitting each file separately took longer than many of the flushes.
        for share in _shares(files):
            flush = self._threads.submit(_make_durable, share)
            self._under_way.update((file.path, flush) for file in share)

    def withdraw(self) -> None:
        """Nothing: the next start removes it."""

    def publish(self, files: Sequence[DataFile]) -> None:
        paths = {self.folder / file_of(file.path) for file in files}
        for path in paths:
            self._under_way.pop(path).result()
        # Only now: the files, and their folders, may have been created by the threads.
        folders = {path.parent for path in paths}
        # A new table folder is a name in the output folder, which has to be flushed, too.
        parents = [] if folders <= self._durable_folders else [self.folder]
        list(self._threads.map(_sync, _shares([*folders, *parents])))
        self._durable_folders |= folders

    def committed(self, files: Sequence[DataFile]) -> None:
        sizes: Counter[str] = Counter()
        for file in files:
            sizes[file_of(file.path)] += file.bytes
        for path, size in sizes.items():
            self._cached_files.add(self.folder / path, size)

    def note_caught_up(self, moment_us: int) -> None:
        write_caught_up(self.folder, moment_us)

    def close(self) -> None:
        self._threads.shutdown()


def _shares(items: Sequence[_Item]) -> Iterable[Sequence[_Item]]:
    """One list of items for each thread, as far as there are so many."""
    return filter(None, (items[first::_AT_ONCE] for first in range(_AT_ONCE)))


def _make_durable(files: Iterable[GrowingFile]) -> None:
    for file in files:
        file.make_durable()


def _sync(paths: Iterable[Path]) -> None:
    for path in paths:
        with writing(path):
            sync(path)


class Uploads(Publication):
    """Uploads files from the spool: full files and packs when they are finished, the rest when their commit
    is due."""

    roll_bytes = _OBJECT_BYTES
    bounds_backlog = True

    def __init__(self, out: StoreUrl) -> None:
        self._out = out
        self._storage = storage_of(out)
        self.folder = working_folder(out)
        self._threads = ThreadPoolExecutor(_AT_ONCE // 2, "upload")
        self._notes = ThreadPoolExecutor(1, "note")
        self._note: Future[None] | None = None
        self._noted = 0.0
        self._under_way: dict[str, Future[None]] = {}
        """By the path of a file that no commit in the log lists."""

    def written(self, files: Sequence[GrowingFile]) -> None:
        for file in files:
            path = file.path.relative_to(self.folder).as_posix()
            self._under_way[path] = self._threads.submit(self._upload, path, file)

    def publish(self, files: Sequence[DataFile]) -> None:
        for path in {file_of(file.path) for file in files}:
            self._under_way[path].result()

    def _upload(self, path: str, file: GrowingFile) -> None:
        file.release()
        with writing(file.path):
            self._storage.replace(path, file.path.read_bytes())
            file.path.unlink()

    def committed(self, files: Sequence[DataFile]) -> None:
        for path in {file_of(file.path) for file in files}:
            del self._under_way[path]

    def withdraw(self) -> None:
        for upload in self._under_way.values():
            upload.cancel()
        self._threads.shutdown()
        with suppress(OutputError, OSError):
            self._storage.remove(path for path, upload in self._under_way.items() if not upload.cancelled())

    def note_caught_up(self, moment_us: int) -> None:
        """In the background: a store that does not answer must not hold the stream."""
        idle = self._note is None or self._note.done()
        if idle and monotonic() - self._noted >= _NOTE_SECONDS:
            self._noted = monotonic()
            self._note = self._notes.submit(_in_peace, lambda: write_caught_up(self._out, moment_us))

    def close(self) -> None:
        for upload in self._under_way.values():
            upload.cancel()
        self._threads.shutdown()
        self._notes.shutdown(cancel_futures=True)


def _in_peace(function: Callable[[], None]) -> None:
    """Only the lag that `status` shows depends on it."""
    with suppress(OutputError):
        function()
