"""Rows of binary result sets become batches that decode to the same values, wherever the bytes are cut."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.binlog.field_types import FieldType
from engine.binlog.field_types import FieldType as F
from engine.config.decode_options import DecodeOptions
from engine.errors import EngineError
from engine.net.protocol.capabilities import Capability
from engine.net.protocol.packets import ServerError, build_err
from engine.net.protocol.wire import ProtocolError
from engine.snapshot.rows.row_batches import Place, RowBatch, RowBatches
from engine.snapshot.rows.row_format import RowFormat
from tests.support import binary_rows
from tests.support.binary_rows import (
    LATIN1,
    MODERN,
    OLD,
    UNSIGNED,
    Typed,
    any_value,
    content,
    duration,
    moment,
    number,
    result,
    row,
    table,
    text,
)
from tests.support.selected_rows import decoded

PLACE = Place("binlog.000042", 1234, 1_700_000_000)
LARGEST_PACKET = (1 << 24) - 1


@dataclass(frozen=True)
class Kind:
    """A column's type, its values in Arrow, and how a server sends them."""

    typed: Typed
    values: st.SearchStrategy[Any]
    sent: Callable[[Any], bytes] = any_value
    flavor: str = "mysql"


def integers(declared: str, code: int, format: str, bits: int) -> list[Kind]:
    signed = st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    unsigned = st.integers(0, (1 << bits) - 1)
    as_arrow = unsigned.map(Decimal) if bits == 64 else unsigned
    return [
        Kind(Typed(declared, code), signed, lambda value: number(format, value)),
        Kind(
            Typed(f"{declared} unsigned", code, UNSIGNED),
            as_arrow,
            lambda value: number(format.upper(), int(value)),
        ),
    ]


def decimals(precision: int, scale: int) -> Kind:
    """Over 38 digits Arrow has their text."""
    limit = 10**precision - 1

    def exact(digits: int) -> Decimal | str:
        sign, digits = digits < 0, abs(digits)
        value = Decimal((sign, tuple(map(int, str(digits))), -scale))
        return value if precision <= 38 else format(value, "f")

    numbers = st.integers(-limit, limit).map(exact)
    return Kind(
        Typed(f"decimal({precision},{scale})", F.NEWDECIMAL, decimals=scale),
        numbers,
        lambda value: content(format(Decimal(value), "f").encode()),
    )


def fractions(digits: int) -> st.SearchStrategy[int]:
    """Microseconds of so many digits."""
    return st.integers(0, 10**digits - 1).map(lambda number: number * 10 ** (6 - digits))


def temporal(digits: int) -> list[Kind]:
    suffix = f"({digits})" if digits else ""
    first, last = datetime(1970, 1, 1, 0, 0, 1), datetime(2106, 2, 7, 6, 28, 15)

    def moments(low: datetime, high: datetime) -> st.SearchStrategy[datetime]:
        return st.builds(
            lambda value, micros: value.replace(microsecond=micros),
            st.datetimes(low, high),
            fractions(digits),
        )

    durations = st.builds(
        lambda seconds, micros, sign: sign * timedelta(seconds=seconds, microseconds=micros),
        st.integers(0, 838 * 3600 + 59 * 60 + 58),
        fractions(digits),
        st.sampled_from([1, -1]),
    )
    return [
        Kind(
            Typed(f"datetime{suffix}", F.DATETIME, decimals=digits),
            moments(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)) | st.none(),
            moment,
        ),
        Kind(
            Typed(f"timestamp{suffix}", F.TIMESTAMP, decimals=digits),
            moments(first, last).map(lambda value: value.replace(tzinfo=UTC)) | st.none(),
            moment,
        ),
        Kind(Typed(f"time{suffix}", F.TIME, decimals=digits), durations, duration),
    ]


def bits(count: int) -> Kind:
    numbers = st.integers(0, (1 << count) - 1)
    as_arrow = {1: numbers.map(bool), 64: numbers.map(Decimal)}.get(count, numbers)
    return Kind(
        Typed(f"bit({count})", F.BIT, UNSIGNED),
        as_arrow,
        lambda value: content(int(value).to_bytes((count + 7) // 8, "big")),
    )


def enumeration(count: int, width: str) -> Kind:
    members = [f"m{n}" for n in range(count)]
    declared = "enum({})".format(",".join(f"'{member}'" for member in members))
    return Kind(
        Typed(declared, F.LONGLONG if width == "Q" else F.LONG, UNSIGNED),
        st.sampled_from(["", *members]),
        lambda value: number(width, members.index(value) + 1 if value else 0),
    )


def members_of(count: int) -> Kind:
    members = [f"m{n}" for n in range(count)]
    declared = "set({})".format(",".join(f"'{member}'" for member in members))

    def shown(mask: int) -> str:
        return ",".join(member for n, member in enumerate(members) if mask >> n & 1)

    return Kind(
        Typed(declared, F.LONGLONG, UNSIGNED),
        st.integers(0, (1 << count) - 1).map(shown),
        lambda value: number("Q", sum(1 << members.index(member) for member in value.split(",") if member)),
    )


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LONG_BYTES = st.binary(max_size=300) | st.sampled_from([b"", b"x" * 65535, bytes(70000)])
POINTS = st.builds(lambda srid, wkb: {"srid": srid, "wkb": wkb}, st.integers(0, 9999), st.binary(max_size=40))
FLOATS = st.floats(width=32, allow_nan=False)

KINDS = [
    *integers("tinyint", F.TINY, "b", 8),
    *integers("smallint", F.SHORT, "h", 16),
    *integers("int", F.LONG, "i", 32),
    *integers("bigint", F.LONGLONG, "q", 64),
    Kind(
        Typed("mediumint", F.INT24),
        st.integers(-(1 << 23), (1 << 23) - 1),
        lambda value: number("i", value),
    ),
    Kind(
        Typed("mediumint unsigned", F.INT24, UNSIGNED),
        st.integers(0, (1 << 24) - 1),
        lambda value: number("I", value),
    ),
    Kind(Typed("float", F.FLOAT), FLOATS, lambda value: number("f", value)),
    Kind(Typed("double", F.DOUBLE), st.floats(allow_nan=False), lambda value: number("d", value)),
    Kind(Typed("year(4)", F.YEAR), st.just(0) | st.integers(1901, 2155), lambda value: number("H", value)),
    Kind(
        Typed("year(2)", F.YEAR), st.integers(1970, 2069), lambda value: number("H", value % 100), "mariadb"
    ),
    *(decimals(*size) for size in ((1, 0), (5, 5), (10, 2), (18, 9), (20, 10), (38, 0), (38, 37), (65, 30))),
    *(kind for digits in range(7) for kind in temporal(digits)),
    Kind(Typed("date", F.DATE), st.dates() | st.none(), moment),
    *(bits(count) for count in (1, 2, 8, 9, 33, 64)),
    *(enumeration(3, width) for width in "QI"),
    enumeration(300, "Q"),
    *(members_of(count) for count in (3, 9, 17, 32, 33, 64)),
    Kind(text("char(20)", F.STRING), TEXTS),
    Kind(text("varchar(63)"), TEXTS),
    Kind(text("varchar(64)"), TEXTS),
    Kind(
        Typed("varchar(50)", F.VAR_STRING, charset="latin1", collation=LATIN1),
        st.text(st.characters(codec="latin1", exclude_categories=["Cc"]), max_size=50),
        lambda value: content(value.encode("latin1")),
    ),
    *(Kind(text(f"{size}text", F.BLOB), TEXTS) for size in ("tiny", "", "medium", "long")),
    Kind(Typed("binary(7)", F.STRING), st.binary(min_size=7, max_size=7)),
    Kind(Typed("varbinary(300)", F.VAR_STRING), st.binary(max_size=300)),
    Kind(Typed("tinyblob", F.BLOB), st.binary(max_size=255)),
    Kind(Typed("longblob", F.BLOB), LONG_BYTES),
    Kind(Typed("json", F.JSON, collation=binary_rows.UTF8MB4), TEXTS),
    Kind(
        Typed("point", F.GEOMETRY),
        POINTS,
        lambda value: content(value["srid"].to_bytes(4, "little") + value["wkb"]),
    ),
    Kind(
        Typed("vector(5)", F.VECTOR),
        st.lists(FLOATS, max_size=5),
        lambda value: content(b"".join(number("f", item) for item in value)),
    ),
    Kind(text("varchar(500) /*M!100301 COMPRESSED*/"), TEXTS, flavor="mariadb"),
    Kind(Typed("blob /*M!100301 COMPRESSED*/", F.BLOB), st.binary(max_size=300), flavor="mariadb"),
    Kind(
        Typed("inet4", F.STRING),
        st.ip_addresses(v=4).map(str),
        lambda value: content(bytes(map(int, value.split(".")))),
        "mariadb",
    ),
]


def batches_of(
    kinds: Sequence[Typed],
    stream: bytes,
    pieces: Iterable[int] = (),
    *,
    flavor: str = "mysql",
    capabilities: Any = MODERN,
    sequence: int | None = 5,
    target: int = 2 << 20,
    memory: int = 4 << 20,
) -> list[RowBatch]:
    """The batches of a result, received in pieces of these sizes and then as much as there is room for."""
    definition, columns = table(kinds)
    row_format = RowFormat.of(definition, flavor, (10, 11, 6))
    plan = row_format.plan(columns)
    batches = RowBatches(row_format, plan, PLACE, capabilities, sequence=sequence, target=target)
    sizes, at, found = iter(pieces), 0, []
    while not batches.finished:
        if batches.wants_memory:
            batches.lend(np.full(memory, 0xA5, np.uint8))
        if (batch := batches.take()) is not None:
            found.append(batch)
        elif not batches.finished:
            room = batches.room()
            size = min(next(sizes, len(room)), len(room), len(stream) - at)
            if not size:
                raise EOFError
            room[:size] = stream[at : at + size]
            at += size
            batches.received(size)
    assert batches.bytes == at == len(stream)
    assert batches.rows == sum(batch.rows for batch in found)
    return found


def rows_of(batches: Sequence[RowBatch], options: DecodeOptions | None = None) -> pa.Table:
    return pa.Table.from_batches([decoded(batch, options)[0] for batch in batches])


@settings(max_examples=20)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.typed.declared[:20])
@given(data=st.data())
def test_values_of_every_type(kind: Kind, data: st.DataObject) -> None:
    values = data.draw(st.lists(kind.values | st.just(...), min_size=1, max_size=8))
    sent = [row([number("b", 1), None if value is ... else kind.sent(value)]) for value in values]
    batches = batches_of([Typed("tinyint", F.TINY), kind.typed], result(sent), flavor=kind.flavor)
    got = rows_of(batches).column("c1").to_pylist()
    assert got == [None if value is ... else value for value in values]


PARTIAL = [
    ("date", F.DATE, b"\x04\x00\x00\x00\x00", "0000-00-00"),
    ("date", F.DATE, b"\x00", "0000-00-00"),
    ("date", F.DATE, b"\x04\xe8\x07\x00\x00", "2024-00-00"),
    ("date", F.DATE, b"\x04\xe7\x07\x02\x1e", "2023-02-30"),
    ("datetime", F.DATETIME, b"\x07\xe8\x07\x00\x00\x0a\x0b\x0c", "2024-00-00 10:11:12"),
    ("datetime", F.DATETIME, b"\x00", "0000-00-00 00:00:00"),
    ("timestamp", F.TIMESTAMP, b"\x00", "0000-00-00 00:00:00"),
    ("time", F.TIME, b"\x00", "00:00:00"),
    ("time", F.TIME, b"\x08\x01\x22\x00\x00\x00\x16\x3b\x3b", "-838:59:59"),
]


@pytest.mark.parametrize(("declared", "code", "sent", "want"), PARTIAL)
def test_partial_dates_and_limits_as_text(declared: str, code: FieldType, sent: bytes, want: str) -> None:
    batches = batches_of([Typed(declared, code)], result([row([sent])]))
    assert rows_of(batches, DecodeOptions(temporal_text=True)).column("c0").to_pylist() == [want]


def test_digits_that_servers_add_or_leave_out() -> None:
    typed = Typed("decimal(12,3) unsigned zerofill", F.NEWDECIMAL, UNSIGNED)
    sent = [b"000000012.345", b".5", b"0.500", b"999999999.999"]
    rows = [row([content(digits if digits != b".5" else b".500")]) for digits in sent]
    want = [Decimal(digits.decode()) for digits in sent]
    assert rows_of(batches_of([typed], result(rows))).column("c0").to_pylist() == want


MIXED = [
    Typed("int", F.LONG),
    text("varchar(300)"),
    Typed("decimal(10,2)", F.NEWDECIMAL),
    Typed("date", F.DATE),
]


def mixed_row(n: int) -> bytes:
    values = [number("i", n), content(b"%d" % n * (n % 50)), content(b"-%d.05" % n), moment(date(2024, 1, 1))]
    return row([None if n % (at + 3) == 0 else value for at, value in enumerate(values)])


@settings(max_examples=40)
@pytest.mark.parametrize("capabilities", [MODERN, OLD])
@given(pieces=st.lists(st.integers(1, 60), max_size=200), target=st.integers(0, 2000))
def test_cut_anywhere(capabilities: Capability, pieces: list[int], target: int) -> None:
    """The values are the same; batches of several rows are not larger than their target."""
    stream = result([mixed_row(n) for n in range(30)], capabilities)
    whole = rows_of(batches_of(MIXED, stream, capabilities=capabilities))
    batches = batches_of(MIXED, stream, pieces, capabilities=capabilities, target=target, memory=1500)
    got = rows_of(batches)
    for name in ("c0", "c1", "c2", "c3"):
        assert got.column(name).to_pylist() == whole.column(name).to_pylist()
    # At least, there is room for the events before the rows, and for one row.
    assert all(len(batch.data) <= max(target, 1000) for batch in batches)
    assert sum(batch.rows for batch in batches) == 30


@pytest.mark.parametrize("size", [LARGEST_PACKET - 14, LARGEST_PACKET - 13, 2 * LARGEST_PACKET - 20, 5 << 23])
@pytest.mark.parametrize("sequence", [254, None])
def test_rows_of_several_packets(size: int, sequence: int | None) -> None:
    kinds = [Typed("int", F.LONG), Typed("longblob", F.BLOB), Typed("int", F.LONG)]
    large = np.arange(size, dtype=np.uint32).astype(np.uint8).tobytes()
    rows = [
        row([number("i", n), content(blob), number("i", -n)])
        for n, blob in enumerate([b"", large, b"z", large])
    ]
    stream = result(rows, sequence=254)
    pieces = [7, 300_000, 16 << 20, 16 << 20, 5, 1, 1, 1, 1 << 20]
    batches = batches_of(kinds, stream, pieces, sequence=sequence)
    got = rows_of(batches)
    assert got.column("c0").to_pylist() == [0, 1, 2, 3]
    assert got.column("c2").to_pylist() == [0, -1, -2, -3]
    blobs = zip(got.column("c1"), [b"", large, b"z", large], strict=True)
    assert [cell.as_py() == blob for cell, blob in blobs] == [True] * 4
    assert [batch.in_lent_memory for batch in batches] == [True, False, True, False]


def test_a_row_larger_than_the_target_is_in_the_lent_memory() -> None:
    kinds = [Typed("longblob", F.BLOB)]
    stream = result([row([content(bytes(size))]) for size in (50_000, 100)])
    batches = batches_of(kinds, stream, target=1000)
    assert [(batch.rows, batch.in_lent_memory) for batch in batches] == [(1, True), (1, True)]


def test_batches_have_nothing_but_rows() -> None:
    """Whatever the events feed contains: a snapshot's events are not events of the server."""
    (batch,) = batches_of(MIXED, result([mixed_row(1)]))
    rows, schema = decoded(batch, DecodeOptions(bookkeeping_events=True))
    assert rows.num_rows == 1
    assert schema.metadata[b"table"] == b"orders"


def test_an_error_of_the_server_ends_the_result() -> None:
    stream = result([mixed_row(1), build_err(ServerError(1317, "70100", "Query execution was interrupted"))])
    with pytest.raises(ServerError, match="1317"):
        batches_of(MIXED, stream)


DAMAGE = [
    ([b"\x01" + bytes(20)], "neither a row nor the end"),
    ([b"\xfe" + bytes(20)], "neither a row nor the end"),
    ([b"\x00"], "ends after the end"),
    (
        [row([number("i", 1), content(b"x" * 1201), b"\0", b"\0"])],
        r"longer than its column allows .row 1, column c1",
    ),
    ([row([number("i", 1), b"\xff", None, None])], "a length that its type does not allow"),
    ([row([number("i", 1), b"\xfe" + b"\xff" * 8, None, None])], "ends after the end"),
    ([row([None, None, content(b"12345678.9x"), None])], r"digits .*column c2"),
    ([row([None, None, content(b"123456789.99"), None])], "digits"),
    ([row([None, None, content(b"1.999"), None])], "digits"),
    ([row([None, None, content(b""), None])], "digits"),
    ([row([None, None, content(b"-"), None])], "digits"),
    ([row([None, None, None, b"\x04\xe8\x07\x0d\x01"])], r"out of range .*column c3"),
    ([row([None, None, None, b"\x05" + bytes(5)])], "a length that"),
    ([row([None, None, None, b"\x04\xe8\x07\x0c"])], "ends after the end"),
    ([mixed_row(1) + b"\0"], "bytes follow the last value"),
    ([mixed_row(1), row([None] * 4), mixed_row(1)[:-1]], "row 3, column c3"),
]


@pytest.mark.parametrize(("rows", "reason"), DAMAGE)
def test_damaged_rows_are_refused_and_located(rows: list[bytes], reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        batches_of(MIXED, result(rows))


def test_a_missing_packet_is_noticed() -> None:
    first, second = result([mixed_row(1)]), result([mixed_row(2)], sequence=7)
    with pytest.raises(ProtocolError, match="wrong number"):
        batches_of(MIXED, first[: 4 + len(mixed_row(1))] + second)


def test_bytes_after_the_end_are_refused() -> None:
    with pytest.raises(ProtocolError, match="neither a row nor the end"):
        batches_of(MIXED, result([mixed_row(1)]) + b"\0")


HOSTILE = [kind.typed for kind in KINDS if kind.flavor == "mysql"]


@given(
    data=st.data(),
    kinds=st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=20),
    pieces=st.lists(st.integers(1, 40), max_size=20),
)
@example(data=None, kinds=HOSTILE, pieces=[])
def test_hostile_bytes_are_refused_or_transcribed(
    data: st.DataObject | None, kinds: list[Typed], pieces: list[int]
) -> None:
    size = (len(kinds) + 9) // 8
    if data is None:
        payloads = [bytes(1 + size + 400), b"\0" + b"\xff" * (size + 400)]
    else:
        shapes = st.binary(max_size=200) | st.lists(
            st.sampled_from([0, 1, 4, 7, 8, 11, 12, 48, 253]), max_size=200
        ).map(bytes)
        payloads = data.draw(st.lists(shapes.map(lambda payload: b"\0" + payload), max_size=6))
    with suppress(EngineError):
        batches_of(kinds, result(payloads), pieces, target=500, memory=2000)


def test_hostile_bytes_with_every_access_checked() -> None:
    if os.environ.get("BINLOG_ENGINE_CHECK_BOUNDS") == "1":
        pytest.skip("this is the checked run")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        __file__,
        "-k",
        "hostile or damaged",
    ]
    run = subprocess.run(
        command,
        env=os.environ | {"BINLOG_ENGINE_CHECK_BOUNDS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert run.returncode == 0, run.stdout[-3000:]
