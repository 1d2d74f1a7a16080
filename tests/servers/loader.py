"""The command prefix that runs a program of an unpacked Debian root with that root's own C library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def loader_command(root: Path, extra: Sequence[Path] = ()) -> list[str]:
    """The root's loader and library path (`extra` folders first); the program and its arguments follow.

    Library folders are named `lib/<triplet>` in suites before the merged /usr, `usr/lib/<triplet>` since, and
    MySQL keeps libraries of its own in a `private` folder below.
    """
    (loader, *_) = sorted(root.glob("usr/lib/*/ld-linux-*")) or sorted(root.glob("lib/*/ld-linux-*"))
    triplet = loader.parent.name
    folders = [
        root / "lib" / triplet,
        root / "usr/lib" / triplet,
        root / "usr/lib" / triplet / "mysql/private",
    ]
    path = ":".join(str(folder) for folder in [*extra, *folders] if folder.is_dir())
    return [str(loader), "--library-path", path]
