"""Answers to prepared statements up to the first row, with and without EOF packets."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.net.protocol.capabilities import Capability
from engine.net.protocol.packets import Eof, Ok, ServerError, build_eof, build_err, build_ok
from engine.net.protocol.prepared import (
    ExecuteParser,
    PrepareParser,
    build_close,
    build_execute,
    build_prepare,
)
from engine.net.protocol.resultset import build_column_definition
from engine.net.protocol.wire import ProtocolError, lenenc_int_bytes, uint_bytes

OLD = Capability.PROTOCOL_41
MODERN = Capability.PROTOCOL_41 | Capability.DEPRECATE_EOF
counts = st.integers(1, 300)


def definitions(count: int, capabilities: Capability) -> list[bytes]:
    payloads = [build_column_definition(f"c{number}") for number in range(count)]
    return payloads if capabilities == MODERN else [*payloads, build_eof(Eof())]


def prepared(statement_id: int, count: int, capabilities: Capability, parameters: int = 0) -> list[bytes]:
    first = b"\0" + uint_bytes(statement_id, 4) + uint_bytes(count, 2) + uint_bytes(parameters, 2) + bytes(3)
    return [first, *(definitions(count, capabilities) if count else [])]


def executed(count: int, capabilities: Capability) -> list[bytes]:
    return [lenenc_int_bytes(count), *definitions(count, capabilities)]


def feed(parser: PrepareParser | ExecuteParser, payloads: list[bytes]) -> None:
    ended = [parser.feed(payload) for payload in payloads]
    assert ended == [False] * (len(payloads) - 1) + [True]


def test_commands() -> None:
    assert build_prepare("SELECT 'ä'") == b"\x16SELECT '\xc3\xa4'"
    assert build_execute(0x01020304) == b"\x17\x04\x03\x02\x01\0\x01\0\0\0"
    assert build_close(7) == b"\x19\x07\0\0\0"


@pytest.mark.parametrize("capabilities", [OLD, MODERN])
@given(statement_id=st.integers(0, 2**32 - 1), count=counts | st.just(0))
def test_prepare(capabilities: Capability, statement_id: int, count: int) -> None:
    parser = PrepareParser(capabilities)
    feed(parser, prepared(statement_id, count, capabilities))
    assert parser.statement_id == statement_id


@pytest.mark.parametrize("capabilities", [OLD, MODERN])
@given(count=counts)
def test_execute(capabilities: Capability, count: int) -> None:
    parser = ExecuteParser(capabilities)
    feed(parser, executed(count, capabilities))
    assert [column.name for column in parser.columns] == [f"c{number}" for number in range(count)]


@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("parser", [PrepareParser, ExecuteParser])
def test_an_error_at_any_place(parser: type[ExecuteParser | PrepareParser], after: int) -> None:
    payloads = prepared(1, 3, MODERN) if parser is PrepareParser else executed(3, MODERN)
    reading = parser(MODERN)
    for payload in payloads[:after]:
        assert not reading.feed(payload)
    with pytest.raises(ServerError, match="1146"):
        reading.feed(build_err(ServerError(1146, "42S02", "Table 'shop.orders' doesn't exist")))


@pytest.mark.parametrize(
    ("parser", "payload", "reason"),
    [
        (PrepareParser, prepared(1, 1, MODERN, parameters=2)[0], "2 question marks"),
        (PrepareParser, b"\x05", "0x05 is not its marker"),
        (PrepareParser, b"\0\1", "bytes are needed"),
        (ExecuteParser, build_ok(Ok(), MODERN), "without a result set"),
        (ExecuteParser, b"\xfd\0\0\x10", "cannot have 1048576 columns"),
        (ExecuteParser, b"\x01\x01", "cannot have"),
    ],
)
def test_unexpected_answers(parser: type[ExecuteParser | PrepareParser], payload: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        parser(MODERN).feed(payload)


@pytest.mark.parametrize("capabilities", [OLD, MODERN])
@given(data=st.data(), count=st.integers(1, 5))
def test_damage_raises_nothing_but_engine_errors(
    capabilities: Capability, data: st.DataObject, count: int
) -> None:
    for parser, payloads in (
        (PrepareParser(capabilities), prepared(1, count, capabilities)),
        (ExecuteParser(capabilities), executed(count, capabilities)),
    ):
        victim = data.draw(st.integers(0, len(payloads) - 1))
        payload = bytearray(payloads[victim])
        place = data.draw(st.integers(0, len(payload) - 1))
        if data.draw(st.booleans()):
            payload[place] = data.draw(st.integers(0, 255))
        else:
            del payload[place:]
        payloads[victim] = bytes(payload)
        with contextlib.suppress(EngineError):
            for each in payloads:
                if parser.feed(each):
                    break
