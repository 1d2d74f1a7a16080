"""The names of data files, which say what commits a file has rows of.

A file is written for one commit; compaction makes files with the rows of several. The small data files of a
commit may be parts of one file, a *pack*: otherwise a commit of hundreds of tables would be hundreds of
files. Each part is a whole Arrow IPC file, and its path in the log says where in the pack it is.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from engine.output.files import BEFORE_DIGEST, EVENTS_FOLDER, TEMPORARY_SUFFIX, table_folder

PACKS_FOLDER = "_packs"
PART_ALIGNMENT = 64
"""A part begins at a multiple of this offset, as Arrow's buffers do in memory."""

_NAME = re.compile(r"(?:(\d{20})-)?(\d{20})-(?:e\d+-)?\d+\.(?:arrow|pack)", re.ASCII)
_WRITTEN = re.compile(
    rf"(\d{{20}})-(?:e\d+-)?\d+\.(?:arrow|pack)(?:{re.escape(TEMPORARY_SUFFIX)})?", re.ASCII
)
_PART = re.compile(rf"({PACKS_FOLDER}/\d{{20}}-(?:e\d+-)?\d+\.pack)@(\d{{1,18}})\+(\d{{1,18}})", re.ASCII)


class Part(NamedTuple):
    """A part of a pack, in bytes."""

    file: str
    """The pack's path."""
    offset: int
    size: int

    @property
    def path(self) -> str:
        """The path of the part, as the log has it."""
        return f"{self.file}@{self.offset}+{self.size}"

    def size_in(self, file_size: int) -> int:
        """How many of its bytes a file of that size has."""
        return max(0, min(self.size, file_size - self.offset))


def part_of(path: str) -> Part | None:
    """The part of a pack that has the path; None if it is the path of a file."""
    found = _PART.fullmatch(path)
    return None if found is None else Part(found[1], int(found[2]), int(found[3]))


def file_of(path: str) -> str:
    """The path of the file that has the data file at `path`: that of its pack, or `path` itself."""
    part = part_of(path)
    return path if part is None else part.file


def is_data_folder(name: str) -> bool:
    """Whether a folder of an output has data files; the `.` is that between database and table.

    The name of a long database may be cut off before it.
    """
    return name in (EVENTS_FOLDER, PACKS_FOLDER) or "." in name or BEFORE_DIGEST in name


def data_file_name(commit: int, epoch: int, number: int) -> str:
    """The name of a table's file that is written for a commit.

    With an epoch, so that a writer that was taken over never has the name of a file of the next one.
    """
    return f"{commit:020d}-e{epoch}-{number}.arrow" if epoch else f"{commit:020d}-{number}.arrow"


def pack_path(commit: int, epoch: int, number: int) -> str:
    """The path of a pack that is written for a commit."""
    return f"{PACKS_FOLDER}/{data_file_name(commit, epoch, number).removesuffix('.arrow')}.pack"


def compacted_path(database: str, table: str, first: int, last: int, number: int) -> str:
    """The path of a compacted file with a table's rows of the commits `first` to `last`."""
    return f"{table_folder(database, table)}/{first:020d}-{last:020d}-{number}.arrow"


def is_data_file_name(name: str) -> bool:
    """Whether a finished data file or pack can have the name, which is one without its folder."""
    return _NAME.fullmatch(name) is not None


def is_path_of(path: str, database: str, table: str) -> bool:
    """Whether a data file of the table can have the path."""
    folder, _, name = path.rpartition("/")
    is_own = folder == table_folder(database, table) and name.endswith(".arrow") and is_data_file_name(name)
    return is_own or part_of(path) is not None


def written_for(name: str) -> int | None:
    """The commit that a file is written for, also under its temporary name; None for other names."""
    found = _WRITTEN.fullmatch(name)
    return None if found is None else int(found[1])


def commits_in(path: str) -> tuple[int, int]:
    """The first and last commit that list a data file."""
    name = _NAME.fullmatch(file_of(path).rpartition("/")[2])
    assert name is not None
    return int(name[1] or name[2]), int(name[2])


def is_compacted(path: str) -> bool:
    """Whether compaction has made the data file."""
    name = _NAME.fullmatch(path.rpartition("/")[2])
    return name is not None and name[1] is not None
