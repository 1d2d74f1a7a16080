"""The output folder: whether it is one, who writes to it, permission, space, and its file system.

Nothing that stays is written: the files of the probes have no names (O_TMPFILE).
"""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from engine.config.amounts import shown_bytes
from engine.config.output_place import OutputPlace
from engine.doctor.finding import Finding
from engine.errors import EngineError
from engine.output.direct_io import DIRECT_PAGE
from engine.output.folder import open_output
from engine.output.lock import lock_holder
from engine.output.working_folder import working_folder

_SPACE_NEEDED, _SPACE_WANTED = 1 << 30, 10 << 30
"""Bytes: less than the former is used up within a few commits."""
_INODES_WANTED = 100_000
_GOOD_FILE_SYSTEMS = ("ext4", "xfs", "btrfs")
_OTHERS = {
    "nfs": (
        "its server must export it with `sync`, and no client may mount it with `nolock`",
        "see docs/output.md",
    ),
    "nfs4": ("its server must export it with `sync`", "see docs/output.md"),
    "tmpfs": ("its content is lost when the machine restarts", "give a folder on a disk"),
    "overlay": ("a container's own file system is lost with the container", "mount a volume there"),
}
_UNKNOWN = ("it is not known to keep a rename and an fsync through a power failure", "use ext4, XFS or btrfs")


def check_output(out: OutputPlace) -> Iterator[Finding]:
    """Findings about an output folder, which need not exist yet."""
    try:
        state = open_output(out)
    except EngineError as error:
        yield Finding(
            "output folder", str(out), "required", "an output, or a new folder", str(error), "see why"
        )
        return
    yield Finding("output folder", f"{out}, {'new' if state.is_new else f'last commit {state.commit}'}")
    # For an object store: the spool, where files wait for their upload.
    own = working_folder(out)
    writer = lock_holder(out) if own.is_dir() else None
    yield Finding("writer of the output", "none" if writer is None else f"process {writer}")
    folder = next(path for path in (own, *own.absolute().parents) if path.is_dir())
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600))
    except OSError as error:
        yield Finding(
            "permission in the output folder",
            f"no file can be created in {folder}: {error.strerror}",
            "required",
            "writable by this user",
            "the engine creates files there",
            f"change the owner or the mode of {folder}, or give another folder",
        )
        return
    yield Finding("permission in the output folder", f"{folder} is writable")
    yield _space_finding(folder)
    yield from _inode_finding(folder)
    yield _file_system_finding(folder)
    yield _direct_finding(folder)


def _space_finding(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    shown = f"{shown_bytes(free)} free"
    if free >= _SPACE_WANTED:
        return Finding("space for the output", shown)
    return Finding(
        "space for the output",
        shown,
        "required" if free < _SPACE_NEEDED else "advice",
        f"{shown_bytes(_SPACE_WANTED)} or more",
        "a run ends when the disk is full",
        "free some space, or remove old commits with binlog-engine vacuum",
    )


def _inode_finding(folder: Path) -> Iterator[Finding]:
    status = os.statvfs(folder)
    if status.f_files and status.f_favail < _INODES_WANTED:
        yield Finding(
            "files for the output",
            f"{status.f_favail} more",
            "advice",
            f"{_INODES_WANTED} or more",
            "each commit writes a file for each table with much change, and one for the others",
            "use a file system with more inodes",
        )


def _file_system_finding(folder: Path) -> Finding:
    kind = file_system(folder)
    if kind in _GOOD_FILE_SYSTEMS:
        return Finding("file system of the output", kind)
    why, remedy = _OTHERS.get(kind, _UNKNOWN)
    return Finding("file system of the output", kind, "advice", ", ".join(_GOOD_FILE_SYSTEMS), why, remedy)


def file_system(folder: Path) -> str:
    """The type of the file system that contains the folder, as `/proc/self/mountinfo` has it."""
    device = folder.stat().st_dev
    numbers = f"{os.major(device)}:{os.minor(device)}"
    found = "unknown"
    best = -1
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        _, _, mounted, _, place, *_ = fields.split()
        place = place.encode().decode("unicode_escape")
        # A subvolume of btrfs has another device number than its mount.
        is_above = folder.resolve().is_relative_to(place)
        rank = (10_000 if mounted == numbers else 0) + len(place)
        if is_above and rank >= best:
            found, best = rest.split()[0], rank
    return found


def _direct_finding(folder: Path) -> Finding:
    page = mmap.mmap(-1, DIRECT_PAGE)
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT, 0o600)
        try:
            os.pwrite(descriptor, page, 0)
        finally:
            os.close(descriptor)
    except OSError:
        return Finding(
            "direct I/O (O_DIRECT)",
            "not supported",
            "advice",
            "supported",
            "large batches then take processor time for a copy into the page cache",
            "nothing must be changed; another file system is faster for bulk loads",
        )
    finally:
        page.close()
    return Finding("direct I/O (O_DIRECT)", "supported")
