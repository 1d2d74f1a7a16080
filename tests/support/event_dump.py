"""A small binlog of MySQL 8.0.15 as a hex dump."""

from __future__ import annotations

from tests import DATA

DUMP = DATA / "mysql-8.0.15.hex"


def dump_bytes() -> bytes:
    lines = DUMP.read_text().splitlines()
    return bytes.fromhex(" ".join(line for line in lines if not line.startswith("#")))
