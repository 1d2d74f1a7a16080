"""The search for statements in the bytes of a dump finds what a slow one finds, whatever is around them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog import event_types as types
from engine.binlog.position import BinlogPosition
from engine.errors import BinlogError
from engine.net.batching.batcher import ServerErrorPacket
from engine.net.batching.statement_search import StatementSearch
from tests.support.batches import packets_of
from tests.support.binlog_builder import (
    CHECKED,
    MARIADB,
    Part,
    binlog,
    format_description,
    make_event,
    make_events,
    with_post_header,
)
from tests.support.made_events import (
    SIGNED_INT,
    gtid,
    image,
    integer,
    mariadb_compressed,
    payload,
    query,
    rows,
    table_map,
    xid,
)
from tests.support.plain_search import Damaged, PlainSearch

FILE = "binlog.000007"
START = BinlogPosition(FILE, 4)
EOF = b"\x05\0\0\x09\xfe\0\0\x02\0"


def compressed_query(statement: str) -> Part:
    """MariaDB's, with log_bin_compress."""
    body = query(statement)[1]
    text = len(body) - len(statement.encode())
    return types.QUERY_COMPRESSED_EVENT, body[:text] + mariadb_compressed(body[text:])


def file_of(parts: list[Part], *, checksum: bool = True) -> list[bytes]:
    """As `binlog`, with a format description that knows compressed statements."""
    lengths = with_post_header(types.QUERY_COMPRESSED_EVENT, 13, CHECKED).post_header_lengths
    body = struct.pack("<H50sIB", 4, MARIADB.encode(), 0, types.HEADER_LENGTH) + lengths + bytes([checksum])
    first = make_event(types.FORMAT_DESCRIPTION_EVENT, body, 4, checksum=True)
    return [first, *make_events(parts, 4 + len(first), checksum)]


def transaction(number: int) -> list[Part]:
    written = rows(types.WRITE_ROWS_EVENT, 7, 1, [image([integer(number)])])
    return [gtid(number), query("BEGIN"), table_map(7, [SIGNED_INT], table="t"), written, xid()]


def searched(
    stream: bytes, chunks: Iterable[int] = (), *, checksum: bool = True
) -> tuple[StatementSearch, list[tuple[BinlogPosition, str]], Exception | None]:
    """What is found in the stream, in pieces of these sizes (the rest in one go), and how it ended."""
    search = StatementSearch(START, checksum_algorithm=int(checksum))
    found: list[tuple[BinlogPosition, str]] = []
    sizes, at = iter(chunks), 0
    try:
        while at < len(stream) and not search.ended:
            space = search.space()
            taken = min(next(sizes, len(stream)), len(space), len(stream) - at)
            space[:taken] = stream[at : at + taken]
            at += taken
            found += ((each.position, each.query.statement) for each in search.received(taken))
    except (BinlogError, ServerErrorPacket) as error:
        return search, found, error
    return search, found, None


def statements_in(parts: list[Part]) -> list[str]:
    return [text for _, text in searched(packets_of(file_of(parts)))[1]]


@pytest.mark.parametrize(
    "statement",
    [
        *("ALTER TABLE t ADD b INT", "alter table t add b int", "CREATE TABLE t (a INT)", "DROP TABLE t"),
        *("RENAME TABLE t TO u", "TRUNCATE t"),
        *("/* who */ ALTER TABLE t DROP a", "-- who\nDROP TABLE t", "# who\nDROP TABLE t", "\n DROP TABLE t"),
        "SET STATEMENT max_statement_time=1 FOR ALTER TABLE t DROP a",
    ],
)
def test_a_statement_that_may_define_a_table(statement: str) -> None:
    parts = [*transaction(1), gtid(2), query(statement), *transaction(3)]
    assert statements_in(parts) == [statement]
    assert statements_in([*transaction(1), gtid(2), compressed_query(statement)]) == [statement]


@pytest.mark.parametrize(
    "statement",
    ["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "XA START 'a'", "INSERT INTO t VALUES (1)", ""],
)
def test_other_statements_are_passed(statement: str) -> None:
    assert statements_in([gtid(1), query(statement), *transaction(2)]) == []


def test_what_a_compressed_transaction_contains_is_not_found() -> None:
    inner = payload([query("BEGIN"), query("ALTER TABLE t DROP a"), xid()])
    assert statements_in([gtid(1), inner, gtid(2), query("DROP TABLE t")]) == ["DROP TABLE t"]


texts = st.sampled_from(
    [
        *("BEGIN", "DROP TABLE t", "create table é (a int)", "/* x */ DELETE FROM t", "UPDATE t SET a = 1"),
        *("CREATE TABLE t (a INT) START TRANSACTION", ""),
    ]
)
pieces: st.SearchStrategy[list[Part]] = st.one_of(
    st.integers(1, 1000).map(transaction),
    texts.map(lambda text: [gtid(9), query(text)]),
    texts.map(lambda text: [compressed_query(text)]),
    st.binary(max_size=60).map(lambda body: [(types.HEARTBEAT_LOG_EVENT, body)]),
    st.binary(max_size=60).map(lambda body: [(types.ANNOTATE_ROWS_EVENT, body)]),
    st.just([payload([query("BEGIN"), xid()])]),
    st.integers(4, 1 << 40).map(lambda at: [(types.ROTATE_EVENT, struct.pack("<Q", at) + b"binlog.000008")]),
)


def compared(stream: bytes, chunks: Iterable[int], checksum: bool) -> None:
    """The same statements, the same position, and damage in the same streams."""
    slow = PlainSearch(START, checksum_algorithm=int(checksum))
    try:
        slow.read(stream)
        damaged = False
    except Damaged:
        damaged = True
    search, found, error = searched(stream, chunks, checksum=checksum)
    assert found == slow.found
    assert (error is not None) == damaged, error
    assert damaged or search.position == slow.position


@given(st.lists(pieces, max_size=12), st.booleans(), st.lists(st.integers(1, 300), max_size=60))
def test_the_same_as_a_slow_search(parts: list[list[Part]], checksum: bool, chunks: list[int]) -> None:
    events = file_of([part for piece in parts for part in piece], checksum=checksum)
    compared(packets_of(events) + EOF, chunks, checksum)


@given(st.lists(pieces, min_size=1, max_size=5), st.booleans(), st.data())
def test_the_same_of_hostile_bytes(parts: list[list[Part]], checksum: bool, data: st.DataObject) -> None:
    """Numbers are changed, wherever they are: sizes beyond the end, headers that are cut off, other types."""
    events = file_of([part for piece in parts for part in piece], checksum=checksum)
    stream = bytearray(packets_of(events))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(stream) - 1))
        stream[at] = data.draw(st.sampled_from([0, 1, 2, 4, 15, 16, 18, 19, 20, 23, 0x7F, 0xFE, 0xFF]))
    whole = bytes(stream[: data.draw(st.integers(0, len(stream)))])
    compared(whole, data.draw(st.lists(st.integers(1, 300), max_size=20)), checksum)


def test_a_position_is_that_of_the_event() -> None:
    parts = [*transaction(1), gtid(2), query("DROP TABLE t"), *transaction(3)]
    events = binlog(parts)
    search, found, _ = searched(packets_of(events))
    at = 4 + sum(map(len, events[: 1 + parts.index(query("DROP TABLE t"))]))
    assert found == [(BinlogPosition(FILE, at), "DROP TABLE t")]
    assert search.position == BinlogPosition(FILE, 4 + sum(map(len, events)))


def test_into_the_next_file_whose_events_have_no_checksums() -> None:
    rotation = types.ROTATE_EVENT, struct.pack("<Q", 4) + b"binlog.000008"
    announced = make_event(*rotation, 0, flags=types.FLAG_ARTIFICIAL, checksum=True)
    first = format_description(checksum=False)
    rest = make_events([gtid(1), query("DROP TABLE t")], 4 + len(first), checksum=False)
    stream = packets_of([*binlog([*transaction(1), rotation]), announced, first, *rest]) + EOF
    search, found, error = searched(stream)
    assert (error, search.ended) == (None, True)
    assert found == [(BinlogPosition("binlog.000008", 4 + len(first) + len(rest[0])), "DROP TABLE t")]
    assert search.position == BinlogPosition("binlog.000008", 4 + len(first) + sum(map(len, rest)))


@pytest.mark.parametrize("chunk", [1 << 16, 1 << 20, 1 << 26])
def test_an_event_of_several_packets(chunk: int) -> None:
    """Larger than the buffer; and a statement that is."""
    large = types.ROWS_QUERY_LOG_EVENT, b"\xff" + bytes(range(256)) * (1 << 17)
    long_statement = "ALTER TABLE t COMMENT '" + "x" * 20_000_000 + "'"
    parts = [gtid(1), query("BEGIN"), large, xid(), gtid(2), query(long_statement), query("DROP TABLE t")]
    stream = packets_of(binlog(parts))
    _, found, error = searched(stream, iter(lambda: chunk, 0))
    assert error is None
    assert [text for _, text in found] == [long_statement, "DROP TABLE t"]


@pytest.mark.parametrize("part", [query("DROP TABLE t"), (types.HEARTBEAT_LOG_EVENT, b"binlog.000007")])
def test_a_damaged_event_that_counts(part: Part) -> None:
    events = binlog([*transaction(1), part])
    broken = events[-1][:-6] + bytes([events[-1][-6] ^ 1]) + events[-1][-5:]
    _, found, error = searched(packets_of([*events[:-1], broken]))
    assert found == []
    assert isinstance(error, BinlogError) and "checksum" in str(error)
    assert error.position == 4 + sum(map(len, events[:-1]))


def test_damaged_rows_are_left_to_the_stream() -> None:
    events = binlog([*transaction(1), gtid(2), query("DROP TABLE t")])
    written = events[4]
    events[4] = written[:-6] + bytes([written[-6] ^ 1]) + written[-5:]
    assert [text for _, text in searched(packets_of(events))[1]] == ["DROP TABLE t"]


def test_no_format_description() -> None:
    _, _, error = searched(packets_of(binlog(transaction(1))[1:]))
    assert isinstance(error, BinlogError) and "no format description" in str(error)


def test_an_error_of_the_server() -> None:
    stream = packets_of(binlog(transaction(1))) + b"\x09\0\0\x07\xff\xd4\x04#HY000"
    _, _, error = searched(stream)
    assert isinstance(error, ServerErrorPacket)
    assert error.payload == b"\xff\xd4\x04#HY000"
