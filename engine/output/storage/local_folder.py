"""An output in a folder of this machine: files that are made durable, then renamed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.output.data_file_names import file_of, part_of
from engine.output.files import (
    TEMPORARY_SUFFIX,
    create_file,
    make_folder_in,
    remove_files,
    sync,
    temporary_name,
    write_new,
    write_temporary,
)
from engine.output.storage.interface import Storage

if TYPE_CHECKING:
    import pyarrow as pa

_NEXT_SUFFIX = ".next"
"""Of a file that takes the place of another. Not the suffix of temporary names, which the writer removes when
it starts, while others may replace files."""


class LocalFolder(Storage):
    """The files in `place`, a folder that need not exist."""

    has_lock = True

    def __init__(self, place: Path) -> None:
        self.place: Path = place

    def read(self, name: str) -> bytes:
        return (self.place / name).read_bytes()

    def open(self, name: str) -> pa.NativeFile:
        import pyarrow as pa  # Here, because the supervisor reads commits too and has no need of Arrow.

        part = part_of(name)
        if part is None:
            return pa.memory_map(str(self.place / name))
        with pa.memory_map(str(self.place / part.file)) as pack:
            pack.seek(min(part.offset, pack.size()))
            return pa.BufferReader(pack.read_buffer(part.size))

    def exists(self, name: str) -> bool:
        return (self.place / name).exists()

    def size(self, name: str) -> int:
        part = part_of(name)
        size = (self.place / file_of(name)).stat().st_size
        return size if part is None else part.size_in(size)

    def names(self, folder: str, after: str = "") -> list[str]:
        with suppress(FileNotFoundError, NotADirectoryError):
            return sorted(path.name for path in (self.place / folder).iterdir() if path.name > after)
        return []

    def sizes(self, folder: str) -> dict[str, int]:
        return {name: found.st_size for name, found in self._found(folder).items()}

    def times(self, folder: str) -> dict[str, float]:
        return {name: found.st_mtime for name, found in self._found(folder).items()}

    def _found(self, folder: str) -> dict[str, os.stat_result]:
        found = {}
        for name in self.names(folder):
            # Someone may remove it meanwhile.
            with suppress(FileNotFoundError):
                found[name] = (self.place / folder / name).stat()
        return found

    def top_names(self) -> list[str]:
        return self.names("")

    def create(self, name: str, content: bytes) -> None:
        path = self.place / name
        make_folder_in(self.place, path.parent)
        write_temporary(path, content).rename(path)

    def create_with(self, name: str, write: Callable[[Any], None]) -> pa.NativeFile:
        path = self.place / name
        make_folder_in(self.place, path.parent)
        descriptor = create_file(path, os.O_WRONLY | os.O_EXCL)
        with os.fdopen(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        return self.open(name)

    def exchange(self, name: str, old: bytes, new: bytes) -> None:
        self.replace(name, new)

    def replace(self, name: str, content: bytes) -> None:
        path = self.place / name
        make_folder_in(self.place, path.parent)
        following = path.with_name(path.name + _NEXT_SUFFIX)
        following.unlink(missing_ok=True)
        write_new(following, content)
        following.rename(path)
        sync(path.parent)

    def note(self, name: str, content: bytes) -> None:
        path = self.place / name
        temporary = temporary_name(path)
        # Consumers' folders may be writable by others, who must not direct this to another file.
        descriptor = create_file(temporary, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.rename(path)

    def remove(self, names: Iterable[str]) -> None:
        remove_files(self.place / name for name in names)

    def move(self, name: str, new_name: str) -> None:
        path = self.place / name
        path.rename(self.place / new_name)
        sync(path.parent)

    def settle(self, folder: str) -> None:
        with suppress(FileNotFoundError):
            sync(self.place / folder)

    def settle_folders(self) -> None:
        sync(self.place)
        # Another user has made the output in a folder that this one may enter, but not read.
        with suppress(PermissionError):
            sync(self.place.resolve().parent)

    def unfinished(self, name: str) -> bytes:
        return temporary_name(self.place / name).read_bytes()

    def finish(self, name: str) -> None:
        temporary = name + TEMPORARY_SUFFIX
        # Written again: a killed process may have left content that is complete but not durable, and after an
        # fsync that failed a second one would succeed without writing it.
        self.replace(temporary, self.unfinished(name))
        (self.place / temporary).rename(self.place / name)

    def remove_leftovers(self, folder: str) -> None:
        for leftover in (self.place / folder).glob(f"*{TEMPORARY_SUFFIX}"):
            leftover.unlink()
