"""What only MariaDB has: uuid, inet4, inet6, and compressed columns."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.columns.compressed import uncompress
from engine.errors import EventError
from tests.support.column_cells import column, decode
from tests.support.compressed_columns import compressed

UUID = column(FieldType.STRING, 16, declared="uuid", charset="binary")
INET4 = column(FieldType.STRING, 4, declared="inet4", charset="binary")
INET6 = column(FieldType.STRING, 16, declared="inet6", charset="binary")


def stored(value: bytes | None) -> bytes | None:
    return None if value is None else value.rstrip(b"\0")


@given(
    st.lists(st.none() | st.uuids() | st.just(uuid.UUID("00000000-0000-0000-0000-000000000100")), max_size=20)
)
def test_uuids(values: list[uuid.UUID | None]) -> None:
    array = decode(UUID, [stored(None if value is None else value.bytes) for value in values])
    assert array.type == pa.string()
    assert array.to_pylist() == [value and str(value) for value in values]


@given(st.lists(st.none() | st.ip_addresses(v=4), max_size=20))
def test_inet4(values: list[ipaddress.IPv4Address | None]) -> None:
    array = decode(INET4, [stored(None if value is None else value.packed) for value in values])
    assert array.to_pylist() == [value and str(value) for value in values]


INET6_TEXTS = [
    "::",
    "::1",
    "::ffff",
    "::0.1.0.0",
    "::1.2.3.4",
    "::ffff:1.2.3.4",
    "::ffff:0.1.0.0",
    "::1:2:3",
    "1::",
    "1:0:0:2::",
    "1:0:0:2::3",
    "1::2:0:0:3:4",
    "1::2:3:4:5:6:7",
    "0:0:1::",
    "1:2:3:4:5:6:7::",
    "1:2:3:4:5:6:7:8",
    "fe80::a00:27ff:fe8e:8aa8",
    "abcd:ef01:2345:6789:abcd:ef01:2345:6789",
]
"""As the server prints them: even a single zero is left out."""


def test_inet6_texts() -> None:
    cells = [stored(ipaddress.IPv6Address(text).packed) for text in INET6_TEXTS]
    assert decode(INET6, [*cells, None]).to_pylist() == [*INET6_TEXTS, None]


words = st.lists(st.sampled_from([0, 0, 0, 1, 0xFFFF]), min_size=8, max_size=8)


@given(st.lists(words | st.lists(st.integers(0, 0xFFFF), min_size=8, max_size=8), max_size=20))
def test_inet6_texts_are_the_address(addresses: list[list[int]]) -> None:
    packed = [b"".join(word.to_bytes(2, "big") for word in address) for address in addresses]
    texts = decode(INET6, [stored(value) for value in packed]).to_pylist()
    assert [ipaddress.IPv6Address(text).packed for text in texts] == packed


@pytest.mark.parametrize(("address", "length"), [(UUID, 16), (INET4, 4), (INET6, 16)])
def test_addresses_that_are_too_long(address: Column, length: int) -> None:
    with pytest.raises(EventError) as caught:
        decode(address, [b"", b"x" * (length + 1)])
    assert caught.value.offset == 4


@given(st.lists(st.none() | st.tuples(st.text(), st.integers(0, 3)), max_size=10))
def test_compressed_columns(values: list[tuple[str, int] | None]) -> None:
    forms: list[Callable[[bytes], bytes]] = [
        lambda b: b and b"\0" + b,
        lambda b: b and compressed(b, True),
        lambda b: b and compressed(b, False),
    ]
    for charset, codec in (("utf8mb4", "utf-8"), ("utf16", "utf_16_be")):
        cells = [v and forms[v[1] % 3](v[0].encode(codec)) for v in values]
        array = decode(column(FieldType.BLOB_COMPRESSED, 3, charset=charset), cells)
        assert array.to_pylist() == [v and v[0] for v in values]
    cells = [v and forms[v[1] % 3](v[0].encode()) for v in values]
    array = decode(column(FieldType.VARCHAR_COMPRESSED, 1000, charset="binary"), cells)
    assert array.to_pylist() == [v and v[0].encode() for v in values]


def test_compression_as_the_server_writes_it() -> None:
    """REPEAT('abcä', 30) in a BLOB COMPRESSED of MariaDB 10.11."""
    assert uncompress(bytes.fromhex("8996 4b4c4a3ebc2471b01100")) == "abcä".encode() * 30


@pytest.mark.parametrize(
    "broken",
    [
        b"\x90\x01\x01",
        b"\x89",
        b"\x89\x05",
        compressed(b"hello", True)[:-3],
        b"\x81\x04" + compressed(b"hello", False)[2:],
        b"\x81\x06" + compressed(b"hello", False)[2:],
        b"\x87" + b"\xff" * 7 + b"x",
    ],
)
def test_broken_compressed_values(broken: bytes) -> None:
    for column_type, metadata in ((FieldType.BLOB_COMPRESSED, 2), (FieldType.VARCHAR_COMPRESSED, 300)):
        with pytest.raises(EventError) as caught:
            decode(column(column_type, metadata, charset="binary"), [b"\0x", broken])
        assert caught.value.offset >= 9
