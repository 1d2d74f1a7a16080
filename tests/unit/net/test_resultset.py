"""Text result sets, with and without the EOF packet after the column definitions."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.net.protocol.capabilities import Capability, ServerStatus
from engine.net.protocol.packets import Ok, ServerError, build_err, build_ok
from engine.net.protocol.resultset import ResultSetParser, build_result_set
from engine.net.protocol.wire import ProtocolError

OLD = Capability.PROTOCOL_41
MODERN = Capability.PROTOCOL_41 | Capability.DEPRECATE_EOF
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@st.composite
def result_sets(draw: st.DrawFn) -> tuple[list[str], list[tuple[str | None, ...]]]:
    columns = draw(st.lists(texts, min_size=1, max_size=5))
    row = st.tuples(*(st.one_of(st.none(), texts) for _ in columns))
    return columns, draw(st.lists(row, max_size=6))


def parse(payloads: list[bytes], capabilities: Capability) -> ResultSetParser:
    parser = ResultSetParser(capabilities)
    ended = [parser.feed(payload) for payload in payloads]
    assert ended == [False] * (len(payloads) - 1) + [True]
    return parser


@pytest.mark.parametrize("capabilities", [OLD, MODERN])
@given(result_sets())
def test_round_trip(
    capabilities: Capability, result_set: tuple[list[str], list[tuple[str | None, ...]]]
) -> None:
    columns, rows = result_set
    payloads = build_result_set(columns, rows, ServerStatus.AUTOCOMMIT, capabilities)
    assert len(payloads) == len(columns) + len(rows) + (3 if capabilities == OLD else 2)
    parser = parse(payloads, capabilities)
    assert parser.result == rows
    assert parser.result.columns == tuple(columns)
    assert parser.status == ServerStatus.AUTOCOMMIT


def test_a_statement_without_rows() -> None:
    parser = parse([build_ok(Ok(status=ServerStatus.IN_TRANS), MODERN)], MODERN)
    assert parser.result == []
    assert parser.result.columns == ()
    assert parser.status == ServerStatus.IN_TRANS


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_an_error_at_any_place(after: int) -> None:
    payloads = build_result_set(["a"], [("1",), ("2",)], ServerStatus.NONE, MODERN)
    parser = ResultSetParser(MODERN)
    for payload in payloads[:after]:
        assert not parser.feed(payload)
    with pytest.raises(ServerError, match="1317"):
        parser.feed(build_err(ServerError(1317, "70100", "Query execution was interrupted")))


def test_binary_cells_survive() -> None:
    payloads = build_result_set(["a"], [], ServerStatus.NONE, MODERN)
    payloads.insert(2, b"\x03\xff\xc3a")
    cell = parse(payloads, MODERN).result[0][0]
    assert cell is not None and cell.encode("utf-8", "surrogateescape") == b"\xff\xc3a"


@pytest.mark.parametrize("size", [0, 250, 251, 252, 1 << 16])
def test_cells_of_any_size(size: int) -> None:
    row = ("é" * (size // 2) + "x" * (size % 2), None, "after it")
    assert parse(build_result_set("abc", [row], ServerStatus.NONE, MODERN), MODERN).result == [row]


@pytest.mark.parametrize("row", [b"\x01a", b"\x01a\x02b", b"\x01a\xfc\x01", b"\x01a\xff", b"\x01a\x01bc"])
def test_a_row_whose_sizes_do_not_fit(row: bytes) -> None:
    payloads = build_result_set("ab", [], ServerStatus.NONE, MODERN)
    payloads.insert(3, row)
    with pytest.raises(ProtocolError, match="malformed text row"):
        parse(payloads, MODERN)


def test_a_request_for_a_local_file_is_refused() -> None:
    with pytest.raises(ProtocolError, match="local file"):
        ResultSetParser(MODERN).feed(b"\xfb/etc/passwd")


@pytest.mark.parametrize("capabilities", [OLD, MODERN])
@given(result_sets(), st.data())
def test_damage_raises_nothing_but_engine_errors(
    capabilities: Capability, result_set: tuple[list[str], list[tuple[str | None, ...]]], data: st.DataObject
) -> None:
    payloads = build_result_set(*result_set, ServerStatus.NONE, capabilities)
    victim = data.draw(st.integers(0, len(payloads) - 1))
    payload = bytearray(payloads[victim])
    place = data.draw(st.integers(0, len(payload) - 1))
    if data.draw(st.booleans()):
        payload[place] = data.draw(st.integers(0, 255))
    else:
        del payload[place:]
    payloads[victim] = bytes(payload)
    parser = ResultSetParser(capabilities)
    with contextlib.suppress(EngineError):
        for each in payloads:
            if parser.feed(each):
                break
