"""Binlogs that no server of today writes: those of MySQL 4.1 to 8.0 and MariaDB in MariaDB's own test suite.

Among them `binlog_old_version_4_1.000001`, `ver_5_1_17.001` (rows events of version 0, LOAD DATA),
`ver_trunk_row_v2.001`, `bug40482-bin.000001` (an incident), `trunc_binlog.000001` (cut off),
`mariadb-5.5-binlog.000001`.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from .cache import cached
from .debian import unpack

SUITE = "bookworm"
PACKAGE = "mariadb-test-data"
MAGIC = b"\xfebin"


def historic_binlogs() -> dict[str, Path]:
    """Every binlog of the package by its file name. Raises UnavailableError when they cannot be had."""
    return {path.name: path for path in sorted(cached("historic-binlogs", _fetch).iterdir())}


def _fetch(into: Path) -> None:
    with tempfile.TemporaryDirectory(dir=into) as root:
        unpack(SUITE, [], Path(root), alone=[PACKAGE])
        for path in Path(root).glob("usr/share/mysql/mysql-test/**/std_data/**/*"):
            if path.is_file() and _begins_with_magic(path):
                shutil.copy(path, into)


def _begins_with_magic(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
