"""Decodes random cells of every column type between pages that must not be touched; run as a program.

The batch lies right after one such page or right before another, and the room that a codec fills ends right
before one, so that a kernel that reads or writes out of bounds kills the process.
"""

from __future__ import annotations

import ctypes
import mmap
import random
import sys
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.ma

from engine.binlog.charset_tables import MULTI_BYTE_CHARSETS, SINGLE_BYTE_CHARSETS
from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.arrow.arena import Arena, ArrayParts, in_own_arena
from engine.decode.arrow.codec import Codec, Counters, Options
from engine.decode.arrow.record_message import read_arrays
from engine.decode.columns import codec_for
from engine.errors import EngineError
from tests.support.binary_json import encode
from tests.support.column_cells import lay_out, prefixed
from tests.support.compressed_columns import compressed

_PAGE = mmap.PAGESIZE
_PROT_NONE = 0
_libc = ctypes.CDLL(None, use_errno=True)
_unguarded_empty = np.empty


def guarded(content: bytes, *, at_end: bool) -> np.ndarray:
    """A read-only copy of the bytes, with a forbidden page right after it, or right before it."""
    pages = len(content) // _PAGE + 1
    memory = mmap.mmap(-1, (pages + 2) * _PAGE)
    start = _PAGE + (pages * _PAGE - len(content) if at_end else 0)
    memory[start : start + len(content)] = content
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for forbidden in (address, address + (pages + 1) * _PAGE):
        if _libc.mprotect(ctypes.c_void_p(forbidden), ctypes.c_size_t(_PAGE), _PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")
    return np.frombuffer(memory, np.uint8, len(content), start)


def guarded_empty(shape: Any, dtype: Any = float) -> np.ndarray:
    """`np.empty` whose arrays end right before a forbidden page; the content is junk."""
    plain = _unguarded_empty(shape, dtype)
    return guarded(b"\xa5" * plain.nbytes, at_end=True).view(plain.dtype).reshape(plain.shape)


def guarded_zeros(shape: Any, dtype: Any = float) -> np.ndarray:
    """`np.zeros` of the same kind."""
    array = guarded_empty(shape, dtype)
    array.fill(0)
    return array


def columns() -> list[Column]:
    """About every type, metadata and character set there is."""
    f = FieldType
    shapes: list[tuple[int, int, dict[str, Any]]] = [
        (code, 0, {"unsigned": unsigned})
        for code in (f.TINY, f.SHORT, f.INT24, f.LONG, f.LONGLONG)
        for unsigned in (False, True)
    ]
    shapes += [(code, 0, {}) for code in (f.YEAR, f.DATE, f.NEWDATE, f.TIME, f.DATETIME, f.TIMESTAMP)]
    shapes += [(code, n, {}) for code, n in product((f.TIME, f.DATETIME, f.TIMESTAMP), range(1, 7))]
    shapes += [(f.FLOAT, 4, {}), (f.DOUBLE, 8, {})]
    shapes += [(f.BIT, bits % 8 | bits // 8 << 8, {}) for bits in (1, 2, 13, 33, 64)]
    shapes += [(code, n, {}) for code, n in product((f.DATETIME2, f.TIME2, f.TIMESTAMP2), range(7))]
    shapes += [
        (f.NEWDECIMAL, p | s << 8, {}) for p, s in ((1, 0), (5, 5), (10, 2), (18, 4), (38, 10), (65, 30))
    ]
    shapes += [
        (f.ENUM, 1, {"members": ("a", "bcd")}),
        (f.ENUM, 2, {}),
        (f.SET, 1, {"members": tuple("abcdefgh")}),
    ]
    shapes += [(f.SET, 8, {}), (f.JSON, 4, {}), (f.GEOMETRY, 4, {}), (f.VECTOR, 4, {})]
    shapes += [(f.STRING, 16, {"declared": name}) for name in ("uuid", "inet6")]
    shapes += [(f.STRING, 4, {"declared": "inet4"}), (f.STRING, 20, {"charset": "binary"})]
    charsets = [
        *SINGLE_BYTE_CHARSETS,
        *MULTI_BYTE_CHARSETS,
        "utf8mb4",
        "ucs2",
        "utf16",
        "utf16le",
        "utf32",
        "binary",
    ]
    shapes += [(f.VARCHAR, 300, {"charset": charset}) for charset in sorted(charsets)]
    shapes += [(f.BLOB_COMPRESSED, 2, {"charset": charset}) for charset in ("binary", "latin1")]
    return [Column("c", int(code), metadata, **more) for code, metadata, more in shapes]


def random_content(column: Column, width: int, choose: random.Random) -> bytes:
    """Bytes that are sometimes right, and sometimes nearly so."""
    if width > 0:
        return choose.choice((choose.randbytes(width), bytes([choose.choice((0, 0x80, 0xFF))]) * width))
    if column.declared is not None:
        return choose.randbytes(choose.randint(0, column.metadata))
    content = choose.randbytes(choose.choice((0, 1, 2, 3, 8, 15, 16, 17, 40, 300)))
    if choose.random() < 0.5:
        content = bytes(byte & 0x7F for byte in content)
    if column.type_code == FieldType.JSON:
        texts = ["x" * choose.randint(0, 20), "\x01" * 30]
        document = bytearray(encode({"k": [1, -70000, 2.5, *texts, None, {"n": [2**40]}], "": texts}))
        for _ in range(choose.choice((0, 0, 1, 2))):
            document[choose.randrange(len(document))] = choose.randrange(256)
        content = bytes(document)
    if column.type_code == FieldType.BLOB_COMPRESSED:
        content = compressed(content, choose.random() < 0.5)
    return content[: column.metadata] if column.type_code == FieldType.STRING else content


def _build(codec: Codec, batch: np.ndarray, cells: np.ndarray, arena: Arena) -> ArrayParts:
    return codec.build(batch, cells, arena, Counters())


def main(rounds: int) -> None:
    """Decode `rounds` batches of each column type in each position and kind of rendering."""
    choose = random.Random(1)
    np.empty, np.zeros = guarded_empty, guarded_zeros  # type: ignore[assignment, misc]
    for column, temporal_text in product(columns(), (False, True)):
        codec = codec_for(column, Options(temporal_text))
        decoded = 0
        for at_end in (False, True) * rounds:
            contents = [
                None if choose.random() < 0.1 else random_content(column, codec.width, choose)
                for _ in range(choose.choice((1, 1, 2, 9)))
            ]
            data, cells = lay_out([prefixed(codec, content) for content in contents], gap=b"")
            batch = guarded(data.tobytes(), at_end=at_end)

            try:
                # In rooms that are too small at first.
                in_own_arena(choose.randrange(600), partial(_build, codec, batch, cells))
                (array,) = read_arrays(batch, [cells], [codec], Counters())
            except EngineError:
                continue
            array.validate(full=True)
            decoded += 1
        print(column.type_code, column.metadata, column.charset, column.declared, decoded)


if __name__ == "__main__":
    main(int(sys.argv[1]))
