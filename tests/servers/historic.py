"""Binlogs of servers that nobody can run any more, out of MariaDB's own test suite."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from .cache import cached
from .debian import unpack

SUITE = "bookworm"
PACKAGE = "mariadb-test-data"
FOLDER = "usr/share/mysql/mysql-test"

FILES = {
    "mysql-4.1": "suite/binlog/std_data/binlog_old_version_4_1.000001",
    "mysql-5.1-rows-v0": "suite/binlog/std_data/ver_5_1_17.001",
    "mysql-trunk-rows-v2": "suite/binlog/std_data/ver_trunk_row_v2.001",
    "mysql-bug32407": "std_data/bug32407.001",
    "mysql-incident": "std_data/bug40482-bin.000001",
    "mysql-truncated": "std_data/trunc_binlog.000001",
    "mariadb-5.5": "std_data/mariadb-5.5-binlog.000001",
}


def historic_binlogs() -> dict[str, Path]:
    """The files by what they are (the keys of FILES). Raises UnavailableError when they cannot be had."""
    folder = cached("historic-binlogs", _fetch)
    return {name: folder / Path(path).name for name, path in FILES.items()}


def _fetch(into: Path) -> None:
    with tempfile.TemporaryDirectory(dir=into) as root:
        unpack(SUITE, [], Path(root), alone=[PACKAGE])
        for path in FILES.values():
            shutil.copy(Path(root) / FOLDER / path, into)
