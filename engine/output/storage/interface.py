"""What an output needs of the place where it is stored.

A name is a path in the output with `/` between its parts. A file is created whole or not at all, and never
changed: it can only be replaced as a whole, or removed. A part of a pack (`engine.output.data_file_names`)
can be opened like a file, and has a size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from engine.config.output_place import OutputPlace
from engine.output.storage.waiting import Patience

if TYPE_CHECKING:
    import pyarrow as pa

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Storage(ABC):
    """The files of one output.

    What does not exist raises `FileNotFoundError`. A local folder raises other `OSError`s, too; an object
    store raises `StoreError`, whose message is for users.
    """

    place: OutputPlace
    patience: Patience | None = None
    """How long requests wait for an answer; None: as long as this process waits for others."""
    has_lock: bool
    """Whether a lock excludes a second writer on every machine; otherwise the log itself has to."""

    # Reading

    @abstractmethod
    def read(self, name: str) -> bytes:
        """The content of a file."""

    @abstractmethod
    def open(self, name: str) -> pa.NativeFile:
        """A file, or what there is of a part of a pack, for reading with Arrow; nothing of it is copied."""

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Whether there is such a file."""

    @abstractmethod
    def size(self, name: str) -> int:
        """The size in bytes of a file, or of what there is of a part of a pack."""

    @abstractmethod
    def names(self, folder: str, after: str = "") -> list[str]:
        """The files in a folder whose names come after `after`, sorted; none for a missing folder."""

    @abstractmethod
    def sizes(self, folder: str) -> dict[str, int]:
        """The files in a folder with their sizes in bytes."""

    @abstractmethod
    def times(self, folder: str) -> dict[str, float]:
        """The files in a folder with the time of their last change, seconds since the epoch."""

    @abstractmethod
    def top_names(self) -> list[str]:
        """Files and folders that are directly in the output; none for an output that does not exist."""

    def read_all(self, names: Sequence[str]) -> list[bytes | None]:
        """The contents of several files, None for each that does not exist."""
        return list(self.side_by_side(self._read_if_there, names))

    def _read_if_there(self, name: str) -> bytes | None:
        try:
            return self.read(name)
        except FileNotFoundError:
            return None

    def side_by_side(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """The results of a function, in order; where each call waits for a network, several run at a time."""
        return map(function, items)

    # Writing

    @abstractmethod
    def create(self, name: str, content: bytes) -> None:
        """Create a file durably. Raises `FileExistsError` if there is one, unless a lock excludes that.

        In a local folder the final name itself is durable only after `settle`; until then the content may be
        found under a temporary name (`unfinished`).
        """

    @abstractmethod
    def create_with(self, name: str, write: Callable[[Any], None]) -> pa.NativeFile:
        """Create a file as `create`, but with what `write` writes to the binary file that it is given.

        Returns the file for reading, as `open`. In a local folder it has its final name from the beginning,
        so a crash leaves a part of it.
        """

    @abstractmethod
    def replace(self, name: str, content: bytes) -> None:
        """Create a file durably, or put it in place of another one in one step."""

    @abstractmethod
    def exchange(self, name: str, old: bytes, new: bytes) -> None:
        """Put `new` in place of a file's content in one step, if that is still `old` (or `new` already).

        Otherwise it raises `FileExistsError`, or `FileNotFoundError`, unless a lock excludes that.
        """

    @abstractmethod
    def note(self, name: str, content: bytes) -> None:
        """As `replace`, but a crash may undo it."""

    @abstractmethod
    def remove(self, names: Iterable[str]) -> None:
        """Remove files durably; those that are gone already do not matter."""

    @abstractmethod
    def move(self, name: str, new_name: str) -> None:
        """Give a file another name in the same folder, durably; a crash may leave it under both."""

    # What concerns a local folder only: elsewhere names are durable at once, and there are no temporary ones

    @abstractmethod
    def settle(self, folder: str) -> None:
        """Make the names in a folder durable."""

    @abstractmethod
    def settle_folders(self) -> None:
        """Make the names of the output and of its folders durable."""

    @abstractmethod
    def unfinished(self, name: str) -> bytes:
        """The content of a file under its temporary name."""

    @abstractmethod
    def finish(self, name: str) -> None:
        """Give a file that is under its temporary name its own name."""

    @abstractmethod
    def remove_leftovers(self, folder: str) -> None:
        """Remove all files in a folder that have temporary names."""
