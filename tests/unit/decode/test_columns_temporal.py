"""Dates and times: encoders after MySQL's `my_time.cc`, decoded to Arrow and to text."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.field_types import FieldType
from engine.decode.arrow.codec import Counters, Options
from engine.decode.columns import codec_for
from engine.errors import EngineError, EventError
from tests.support.column_cells import column, decode

TEXT = Options(temporal_text=True)
SCALE = (1, 10, 100, 1000, 10**4, 10**5, 10**6)


def fraction_bytes(micros: int, precision: int) -> bytes:
    size = (precision + 1) // 2
    return (micros // 100 ** (3 - size)).to_bytes(size, "big")


def trimmed(micros: int, precision: int) -> int:
    unit = 10 ** (6 - precision)
    return micros // unit * unit


def date_cell(year: int, month: int, day: int) -> bytes:
    return (year << 9 | month << 5 | day).to_bytes(3, "little")


def datetime2_cell(fields: tuple[int, ...], micros: int, precision: int) -> bytes:
    year, month, day, hour, minute, second = fields
    packed = (year * 13 + month) << 22 | day << 17 | hour << 12 | minute << 6 | second
    return (packed + 0x8000000000).to_bytes(5, "big") + fraction_bytes(micros, precision)


def old_datetime_cell(fields: tuple[int, ...]) -> bytes:
    number = 0
    for field in fields:
        number = number * 100 + field
    return number.to_bytes(8, "little")


def time2_cell(value: timedelta, precision: int) -> bytes:
    """The stored number is that of the magnitude, negated as a whole."""
    micros = abs(value) // timedelta(microseconds=1)
    seconds = micros // 10**6
    packed = seconds // 3600 << 12 | seconds // 60 % 60 << 6 | seconds % 60
    size = 3 + (precision + 1) // 2
    whole = int.from_bytes(packed.to_bytes(3, "big") + fraction_bytes(micros % 10**6, precision), "big")
    return ((0x80 << 8 * (size - 1)) + (-whole if value < timedelta() else whole)).to_bytes(size, "big")


def fields_of(moment: datetime) -> tuple[int, ...]:
    return moment.timetuple()[:6]


def text_of(moment: datetime, precision: int) -> str:
    text = f"{moment.year:04}-{moment:%m-%d %H:%M:%S}"
    return text + (f".{moment.microsecond:06}"[: precision + 1] if precision else "")


PRECISIONS = range(7)


@given(st.lists(st.none() | st.dates(), max_size=20), st.sampled_from([FieldType.DATE, FieldType.NEWDATE]))
def test_dates(dates: list[date | None], type_code: FieldType) -> None:
    cells = [None if day is None else date_cell(day.year, day.month, day.day) for day in dates]
    array = decode(column(type_code), cells)
    assert array.type == pa.date32()
    assert array.to_pylist() == dates
    assert decode(column(type_code), cells, TEXT).to_pylist() == [d and d.isoformat() for d in dates]


@pytest.mark.parametrize("precision", PRECISIONS)
@given(moments=st.lists(st.none() | st.datetimes(), max_size=20))
def test_datetimes(precision: int, moments: list[datetime | None]) -> None:
    moments = [m and m.replace(microsecond=trimmed(m.microsecond, precision)) for m in moments]
    cells = [None if m is None else datetime2_cell(fields_of(m), m.microsecond, precision) for m in moments]
    array = decode(column(FieldType.DATETIME2, precision), cells)
    assert array.type == pa.timestamp("us")
    assert array.to_pylist() == moments
    texts = decode(column(FieldType.DATETIME2, precision), cells, TEXT).to_pylist()
    assert texts == [m and text_of(m, precision) for m in moments]


@given(st.lists(st.none() | st.datetimes().map(lambda m: m.replace(microsecond=0)), max_size=20))
def test_old_datetimes(moments: list[datetime | None]) -> None:
    cells = [None if m is None else old_datetime_cell(fields_of(m)) for m in moments]
    assert decode(column(FieldType.DATETIME), cells).to_pylist() == moments
    assert decode(column(FieldType.DATETIME), cells, TEXT).to_pylist() == [
        m and text_of(m, 0) for m in moments
    ]


@pytest.mark.parametrize("precision", PRECISIONS)
@given(ticks=st.lists(st.none() | st.integers(10**6, (2**32 - 1) * 10**6), max_size=20))
def test_timestamps(precision: int, ticks: list[int | None]) -> None:
    """Up to 2106: MariaDB 11.5 and later use all 32 bits."""
    ticks = [t and trimmed(t, precision) for t in ticks]
    moments = [t and datetime.fromtimestamp(0, UTC) + timedelta(microseconds=t) for t in ticks]
    cells = [
        None if t is None else (t // 10**6).to_bytes(4, "big") + fraction_bytes(t % 10**6, precision)
        for t in ticks
    ]
    array = decode(column(FieldType.TIMESTAMP2, precision), cells)
    assert array.type == pa.timestamp("us", "UTC")
    assert array.cast(pa.int64()).to_pylist() == ticks
    texts = decode(column(FieldType.TIMESTAMP2, precision), cells, TEXT).to_pylist()
    assert texts == [m and text_of(m, precision) for m in moments]
    whole = [t and t // 10**6 for t in ticks]
    old = decode(column(FieldType.TIMESTAMP), [None if w is None else w.to_bytes(4, "little") for w in whole])
    assert old.cast(pa.int64()).to_pylist() == [w and w * 10**6 for w in whole]


def time_text(value: timedelta, precision: int) -> str:
    seconds, micros = divmod(abs(value) // timedelta(microseconds=1), 10**6)
    text = "-" * (value < timedelta()) + f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text + (f".{micros:06}"[: precision + 1] if precision else "")


LONGEST = timedelta(hours=838, minutes=59, seconds=59)


@pytest.mark.parametrize("precision", PRECISIONS)
@given(times=st.lists(st.none() | st.timedeltas(-LONGEST, LONGEST), max_size=20))
def test_times(precision: int, times: list[timedelta | None]) -> None:
    unit = timedelta(microseconds=10 ** (6 - precision))
    times = [None if t is None else (abs(t) // unit * unit) * (-1 if t < timedelta() else 1) for t in times]
    cells = [None if t is None else time2_cell(t, precision) for t in times]
    array = decode(column(FieldType.TIME2, precision), cells)
    assert array.type == pa.duration("us")
    assert array.to_pylist() == times
    texts = decode(column(FieldType.TIME2, precision), cells, TEXT).to_pylist()
    assert texts == [None if t is None else time_text(t, precision) for t in times]


@given(st.lists(st.none() | st.timedeltas(-LONGEST, LONGEST), max_size=20))
def test_old_times(times: list[timedelta | None]) -> None:
    numbers = [None if t is None else int(t.total_seconds()) for t in times]
    cells = []
    for n in numbers:
        packed = 0 if n is None else abs(n) // 3600 * 10000 + abs(n) // 60 % 60 * 100 + abs(n) % 60
        cells.append(None if n is None else (-packed if n < 0 else packed).to_bytes(3, "little", signed=True))
    wants = [None if n is None else timedelta(seconds=n) for n in numbers]
    assert decode(column(FieldType.TIME), cells).to_pylist() == wants
    texts = decode(column(FieldType.TIME), cells, TEXT).to_pylist()
    assert texts == [None if w is None else time_text(w, 0) for w in wants]


def number_cell(number: int, precision: int, widths: tuple[int, ...]) -> bytes:
    """MariaDB's own form of before 10.1: a number of the smallest unit."""
    return (number // 10 ** (6 - precision)).to_bytes(widths[precision], "big")


@pytest.mark.parametrize("precision", range(1, 7))
@given(moments=st.lists(st.none() | st.datetimes(), max_size=20))
def test_datetimes_of_old_mariadb(precision: int, moments: list[datetime | None]) -> None:
    moments = [m and m.replace(microsecond=trimmed(m.microsecond, precision)) for m in moments]
    cells: list[bytes | None] = []
    for m in moments:
        if m is None:
            cells.append(None)
            continue
        days = (m.year * 13 + m.month) * 32 + m.day
        number = (((days * 24 + m.hour) * 60 + m.minute) * 60 + m.second) * 10**6 + m.microsecond
        cells.append(number_cell(number, precision, (5, 6, 6, 7, 7, 7, 8)))
    assert decode(column(FieldType.DATETIME, precision), cells).to_pylist() == moments
    texts = decode(column(FieldType.DATETIME, precision), cells, TEXT).to_pylist()
    assert texts == [m and text_of(m, precision) for m in moments]


@pytest.mark.parametrize("precision", range(1, 7))
@given(ticks=st.lists(st.none() | st.integers(10**6, (2**32 - 1) * 10**6), max_size=20))
def test_timestamps_of_old_mariadb(precision: int, ticks: list[int | None]) -> None:
    ticks = [t and trimmed(t, precision) for t in ticks]
    widths = (0, 1, 1, 2, 2, 3, 3)
    cells = [
        None if t is None else (t // 10**6).to_bytes(4, "big") + number_cell(t % 10**6, precision, widths)
        for t in ticks
    ]
    assert decode(column(FieldType.TIMESTAMP, precision), cells).cast(pa.int64()).to_pylist() == ticks


@pytest.mark.parametrize("precision", range(1, 7))
@given(times=st.lists(st.none() | st.timedeltas(-LONGEST, LONGEST), max_size=20))
def test_times_of_old_mariadb(precision: int, times: list[timedelta | None]) -> None:
    unit = timedelta(microseconds=10 ** (6 - precision))
    times = [None if t is None else (abs(t) // unit * unit) * (-1 if t < timedelta() else 1) for t in times]
    zero = LONGEST + timedelta(seconds=1)
    numbers = [None if t is None else (t + zero) // timedelta(microseconds=1) for t in times]
    cells = [None if n is None else number_cell(n, precision, (3, 4, 4, 5, 5, 5, 6)) for n in numbers]
    assert decode(column(FieldType.TIME, precision), cells).to_pylist() == times
    texts = decode(column(FieldType.TIME, precision), cells, TEXT).to_pylist()
    assert texts == [None if t is None else time_text(t, precision) for t in times]


def test_documented_negative_times() -> None:
    """From the table in `my_time_packed_from_binary`: the value of each byte pattern at TIME(2)."""
    for stored, want in (("7FFFFFFF", -1), ("7FFFFF00", -100), ("7FFFFEFF", -101), ("80000001", 1)):
        array = decode(column(FieldType.TIME2, 2), [bytes.fromhex(stored)])
        assert array.to_pylist() == [timedelta(milliseconds=10 * want)]


IMPOSSIBLE = [
    (0, 0, 0),
    (2024, 0, 0),
    (2024, 5, 0),
    (2024, 0, 5),
    (2023, 2, 29),
    (1900, 2, 29),
    (2024, 4, 31),
    (0, 1, 1),
]


@pytest.mark.parametrize("ymd", IMPOSSIBLE)
def test_impossible_dates_of_every_type(ymd: tuple[int, ...]) -> None:
    good = (2024, 2, 29)
    for type_code, cell, fields in (
        (FieldType.DATE, lambda f: date_cell(*f[:3]), 3),
        (FieldType.DATETIME2, lambda f: datetime2_cell(f, 0, 0), 6),
        (FieldType.DATETIME, old_datetime_cell, 6),
    ):
        cells = [cell((*ymd, 7, 8, 9)), cell((*good, 7, 8, 9)), None]
        counters = Counters()
        array = decode(column(type_code), cells, counters=counters)
        assert [value is None for value in array.to_pylist()] == [True, False, True]
        assert counters.values == {"zero_dates": 1}
        text = decode(column(type_code), cells, TEXT, counters)[0].as_py()
        want = "{:04}-{:02}-{:02}".format(*ymd)
        assert text == want + " 07:08:09" * (fields == 6)
        assert counters.values == {"zero_dates": 1}


@pytest.mark.parametrize("year", [10_000, 10_081])
def test_years_of_five_digits(year: int) -> None:
    """MySQL's FROM_DAYS stores them, and packed forms have room for them."""
    for type_code, cell, time in (
        (FieldType.DATE, date_cell(year, 12, 31), ""),
        (FieldType.DATETIME2, datetime2_cell((year, 12, 31, 7, 8, 9), 0, 0), " 07:08:09"),
    ):
        counters = Counters()
        assert decode(column(type_code), [cell], counters=counters).to_pylist() == [None]
        assert counters.values == {"zero_dates": 1}
        assert decode(column(type_code), [cell], TEXT)[0].as_py() == f"{year}-12-31{time}"


def test_zero_timestamps() -> None:
    for type_code in (FieldType.TIMESTAMP, FieldType.TIMESTAMP2):
        counters = Counters()
        cells = [b"\0\0\0\0", b"\1\0\0\1"]
        assert decode(column(type_code), cells, counters=counters).null_count == 1
        assert counters.values == {"zero_dates": 1}
        assert decode(column(type_code), cells, TEXT)[0].as_py() == "0000-00-00 00:00:00"


BROKEN = [
    (FieldType.DATE, 0, date_cell(2024, 13, 1)),
    (FieldType.DATETIME2, 0, datetime2_cell((2024, 1, 1, 24, 0, 0), 0, 0)),
    (FieldType.DATETIME2, 0, datetime2_cell((2024, 1, 1, 0, 60, 0), 0, 0)),
    (FieldType.DATETIME2, 2, datetime2_cell((2024, 1, 1, 0, 0, 0), 0, 0) + b"\x64"),
    (FieldType.DATETIME2, 0, b"\0" * 5),
    (FieldType.DATETIME, 0, b"\xff" * 8),
    (FieldType.DATETIME, 0, b"\xff" * 7 + b"\x7f"),
    (FieldType.TIMESTAMP2, 6, b"\0\0\0\1\xff\xff\xff"),
    (FieldType.TIME2, 0, b"\xff\xff\xff"),
    (FieldType.TIME, 0, b"\xff\xff\x7f"),
    (FieldType.TIME, 2, b"\0\0\0\0"),
    (FieldType.TIME, 2, b"\xff\xff\xff\xff"),
    (FieldType.DATETIME, 3, b"\xff" * 7),
    (FieldType.DATETIME, 6, b"\xff" * 8),
    (FieldType.DATETIME, 6, b"\x7f" * 8),
    (FieldType.TIMESTAMP, 3, b"\0\0\0\1\xff\xff"),
    (FieldType.TIME, 0, b"\0\0\x80"),
]


@pytest.mark.parametrize(("type_code", "precision", "cell"), BROKEN)
@pytest.mark.parametrize("options", [Options(), TEXT])
def test_fields_that_cannot_be(type_code: FieldType, precision: int, cell: bytes, options: Options) -> None:
    with pytest.raises(EventError) as caught:
        decode(column(type_code, precision), [None, cell], options)
    assert caught.value.offset == 0


def test_more_than_six_fraction_digits_name_the_column() -> None:
    with pytest.raises(EngineError, match="column c has 7 fraction digits"):
        codec_for(column(FieldType.TIME2, 7), Options())


def test_all_days_of_some_centuries() -> None:
    first = date(1999, 12, 31)
    days = [first + timedelta(days=n) for n in range(400 * 366)]
    array = decode(column(FieldType.DATE), [date_cell(day.year, day.month, day.day) for day in days])
    start = (first - date(1970, 1, 1)).days
    assert array.cast(pa.int32()).to_pylist() == list(range(start, start + len(days)))
