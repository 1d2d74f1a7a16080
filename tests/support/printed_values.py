"""Row values as `mysqlbinlog -vv` prints them, and ours in its notation: one function per printed type.

Where the two cannot be made equal, or the tool has no notation, the table of differences in
`docs/events.md` says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from engine.binlog.charsets import charset_of
from engine.binlog.column import Column
from tests.support.charset_characters import encoded
from tests.support.mysqlbinlog import run_tool

_ROW = re.compile(r"### (INSERT INTO|UPDATE|DELETE FROM) `(.*)`\.`(.*)`")
_VALUE = re.compile(r"###   @(\d+)=(.*)", re.DOTALL)
_COMMENT = re.compile(r"(.*?)\s* /\* (.+?) meta=\d+ nullable=[01] is_null=[01] \*/", re.DOTALL)
_UNPRINTABLE = "!! Don't know how to handle column type"


@dataclass
class PrintedRow:
    """One row image: which table, and by column number the printed text and type."""

    table: str
    values: dict[int, tuple[str, str]] = field(default_factory=dict)
    complete: bool = True
    """False where the tool met a type that it cannot print and gave up."""


def printed_rows(tool: Sequence[str], path: Path, *options: str) -> list[PrintedRow]:
    """All row images that the tool prints of a binlog file, in order."""
    printed = run_tool(tool, path, *options)
    rows: list[PrintedRow] = []
    table = ""
    for line in printed.decode("utf-8", "surrogateescape").split("\n"):
        if match := _ROW.fullmatch(line):
            table = match[3]
        elif line in ("### WHERE", "### SET"):
            rows.append(PrintedRow(table))
        elif match := _VALUE.fullmatch(line):
            if match[2].startswith(_UNPRINTABLE):
                rows[-1].complete = False
                continue
            commented = _COMMENT.fullmatch(match[2])
            assert commented is not None, line
            rows[-1].values[int(match[1])] = (commented[1], commented[2])
    return rows


def as_printed(value: Any, column: Column, printed_type: str, mariadb: bool) -> str | None:
    """Our value (as `events --json` has it) in the tool's notation; None if that is not known."""
    if value is None:
        return "NULL"
    if "COMPRESSED" in printed_type:
        return None
    (name,) = re.findall(r"^[A-Z/]+", printed_type)
    return _NOTATIONS[name](value, column, mariadb)


def _integer(value: Any, column: Column, mariadb: bool) -> str:
    bits = {1: 8, 2: 16, 9: 24, 3: 32, 8: 64}[column.type_code]
    signed = value - (1 << bits) if value >= 1 << bits - 1 else value
    return str(signed) if signed >= 0 else f"{signed} ({signed + (1 << bits)})"


def _float(value: Any, column: Column, mariadb: bool) -> str:
    return f"{float(np.float32(value)):g}"


def _double(value: Any, column: Column, mariadb: bool) -> str:
    return f"{value:.20g}"


def _decimal(value: Any, column: Column, mariadb: bool) -> str:
    return str(value)


def _bit(value: Any, column: Column, mariadb: bool) -> str:
    width = (column.metadata & 0xFF) + 8 * (column.metadata >> 8)
    return f"b'{int(value):0{width}b}'"


def _year(value: Any, column: Column, mariadb: bool) -> str:
    return str(value or 1900)


def _date(value: Any, column: Column, mariadb: bool) -> str:
    return f"'{value.replace('-', ':')}'"


def _quoted(value: Any, column: Column, mariadb: bool) -> str:
    return f"'{value}'"


def _timestamp(value: str, column: Column, mariadb: bool) -> str:
    whole, point, fraction = value.partition(".")
    if whole.startswith("0000"):
        return f"0{point}{fraction}"
    moment = datetime.fromisoformat(whole).replace(tzinfo=UTC)
    return f"{int(moment.timestamp())}{point}{fraction}"


def _enum(value: Any, column: Column, mariadb: bool) -> str:
    if column.members is None:
        return str(value)
    return str(column.members.index(value) + 1) if value else "0"


def _set(value: Any, column: Column, mariadb: bool) -> str:
    size = column.metadata
    if column.members is None:
        bits = int(value)
    else:
        bits = sum(1 << column.members.index(member) for member in value.split(",") if value)
    # Byte by byte as they are stored, the lowest first.
    return "b'{}'".format("".join(f"{byte:08b}" for byte in bits.to_bytes(size, "little")))


def _string(value: Any, column: Column, mariadb: bool) -> str | None:
    if column.declared in ("uuid", "inet4", "inet6", "vector"):
        return None
    if isinstance(value, dict):
        content = bytes.fromhex(value["hex"])
        # What a column of fixed length has less of in the binlog was zeros.
        content = content.rstrip(b"\0") if column.type_code == 254 else content
    else:
        content = encoded(value, charset_of(column) or "utf8mb4")
    return _escaped(content, mariadb)


def _escaped(content: bytes, mariadb: bool) -> str:
    """MariaDB only cares for control characters; MySQL writes a literal of SQL."""
    shown = []
    for byte in content.decode("utf-8", "surrogateescape"):
        code = ord(byte)
        if not mariadb and byte in _MYSQL_ESCAPES:
            shown.append(_MYSQL_ESCAPES[byte])
        elif code < 0x20:
            shown.append(f"\\x{code:02x}")
        else:
            shown.append(byte)
    return "'{}'".format("".join(shown))


_MYSQL_ESCAPES = {"\\": "\\\\", "'": "\\'"}
_MYSQL_ESCAPES |= {character: f"\\{name}" for character, name in zip("\b\f\n\r\t", "bfnrt", strict=True)}


def _json(value: Any, column: Column, mariadb: bool) -> str:
    # A document that is but a string goes without its quotes.
    return _escaped((json.loads(value) if value.startswith('"') else value).encode(), mariadb)


def _geometry(value: Any, column: Column, mariadb: bool) -> str:
    return _escaped(value["srid"].to_bytes(4, "little") + bytes.fromhex(value["wkb"]["hex"]), mariadb)


def _vector(value: Any, column: Column, mariadb: bool) -> str:
    return "[{}]".format(",".join(f"{np.float32(item):.5e}" for item in value))


_NOTATIONS: dict[str, Callable[[Any, Column, bool], str | None]] = {
    **dict.fromkeys(("TINYINT", "SHORTINT", "MEDIUMINT", "INT", "LONGINT"), _integer),
    "FLOAT": _float,
    "DOUBLE": _double,
    "DECIMAL": _decimal,
    "BIT": _bit,
    "YEAR": _year,
    "DATE": _date,
    "DATETIME": _quoted,
    "TIME": _quoted,
    "TIMESTAMP": _timestamp,
    "ENUM": _enum,
    "SET": _set,
    **dict.fromkeys(("STRING", "VARSTRING"), _string),
    **dict.fromkeys(
        ("TINYBLOB/TINYTEXT", "BLOB/TEXT", "MEDIUMBLOB/MEDIUMTEXT", "LONGBLOB/LONGTEXT"), _string
    ),
    "JSON": _json,
    "GEOMETRY": _geometry,
    "VECTOR": _vector,
}
"""By the type that the tool names."""
