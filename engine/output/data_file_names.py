"""The names of data files, which say what commits a file has rows of.

A file is written for one commit; compaction makes files with the rows of several.
"""

from __future__ import annotations

import re

from engine.output.files import TEMPORARY_SUFFIX

_NAME = re.compile(r"(?:(\d{20})-)?(\d{20})-(?:e\d+-)?\d+\.arrow")
_WRITTEN = re.compile(rf"(\d{{20}})-(?:e\d+-)?\d+\.arrow(?:{re.escape(TEMPORARY_SUFFIX)})?", re.ASCII)


def data_file_name(commit: int, epoch: int, number: int) -> str:
    """The name of a table's file that is written for a commit.

    With an epoch, so that a writer that was taken over never has the name of a file of the next one.
    """
    return f"{commit:020d}-e{epoch}-{number}.arrow" if epoch else f"{commit:020d}-{number}.arrow"


def compacted_path(path: str, first: int, last: int, number: int) -> str:
    """The path of a compacted file beside the file at `path`, with rows of the commits `first` to `last`."""
    return f"{path.rpartition('/')[0]}/{first:020d}-{last:020d}-{number}.arrow"


def is_data_file_name(name: str) -> bool:
    """Whether a finished data file can have the name, which is one without its folder."""
    return _NAME.fullmatch(name) is not None


def written_for(name: str) -> int | None:
    """The commit that a file is written for, also under its temporary name; None for other names."""
    found = _WRITTEN.fullmatch(name)
    return None if found is None else int(found[1])


def commits_in(path: str) -> tuple[int, int]:
    """The first and last commit that list a data file."""
    name = _NAME.fullmatch(path.rpartition("/")[2])
    assert name is not None
    return int(name[1] or name[2]), int(name[2])


def is_compacted(path: str) -> bool:
    """Whether compaction has made the data file."""
    name = _NAME.fullmatch(path.rpartition("/")[2])
    return name is not None and name[1] is not None
