"""Framing of payloads, and the packets that end an exchange: OK, EOF and ERR in all their forms."""

from __future__ import annotations

import contextlib
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.net.protocol import packets
from engine.net.protocol.capabilities import Capability, ServerStatus
from engine.net.protocol.packets import MAX_PACKET, Eof, Ok, PacketJoiner, ServerError
from engine.net.protocol.wire import ProtocolError

MODERN = Capability.PROTOCOL_41 | Capability.DEPRECATE_EOF
TRACKING = MODERN | Capability.SESSION_TRACK


@given(st.lists(st.binary(max_size=300), max_size=8), st.lists(st.integers(1, 700), min_size=1))
def test_joiner_undoes_frame_however_the_bytes_are_cut(payloads: list[bytes], cuts: list[int]) -> None:
    stream, sequence = b"", 0
    for payload in payloads:
        framed, sequence = packets.frame(payload, sequence)
        stream += framed
    joiner, joined, offset, turn = PacketJoiner(), [], 0, 0
    while offset < len(stream):
        size = cuts[turn % len(cuts)]
        joiner.feed(stream[offset : offset + size])
        offset, turn = offset + size, turn + 1
        while (whole := joiner.next()) is not None:
            joined.append(whole)
    assert joined == payloads
    assert joiner.take_pending() == b""


@pytest.mark.parametrize("size", [MAX_PACKET - 1, MAX_PACKET, MAX_PACKET + 1, 2 * MAX_PACKET])
def test_large_payloads_are_split(size: int) -> None:
    payload = bytes(range(256)) * (size // 256 + 1)
    framed, sequence = packets.frame(payload[:size], 7)
    count = size // MAX_PACKET + 1
    assert sequence == 7 + count
    assert len(framed) == size + 4 * count
    joiner = PacketJoiner()
    joiner.sequence = 7
    joiner.feed(framed)
    assert joiner.next() == payload[:size]


def test_joiner_refuses_a_wrong_sequence() -> None:
    joiner = PacketJoiner()
    joiner.feed(packets.frame(b"late", 3)[0])
    with pytest.raises(ProtocolError, match="packet 3 arrived instead of packet 0"):
        joiner.next()


def test_joiner_refuses_endless_payloads_before_they_are_there() -> None:
    joiner = PacketJoiner(limit=1000)
    joiner.feed(b"\xff\xff\xff\x00")
    with pytest.raises(ProtocolError, match="more than 1000 bytes"):
        joiner.next()


def test_joiner_hands_over_what_follows() -> None:
    joiner = PacketJoiner()
    joiner.feed(packets.frame(b"answer", 0)[0] + b"\x05\x00\x00\x01\x00ab")
    assert joiner.next() == b"answer"
    assert joiner.take_pending() == b"\x05\x00\x00\x01\x00ab"


def test_ok_of_a_successful_login() -> None:
    ok = packets.parse_ok(bytes.fromhex("00 00 00 02 00 00 00"), Capability.PROTOCOL_41)
    assert ok == Ok(status=ServerStatus.AUTOCOMMIT)


oks = st.builds(
    Ok,
    affected_rows=st.integers(0, 1 << 40),
    last_insert_id=st.integers(0, 1 << 63),
    status=st.integers(0, 0x3FFF).map(ServerStatus),
    warnings=st.integers(0, 0xFFFF),
    info=st.binary(max_size=30),
)


@given(oks, st.sampled_from([packets.OK_MARKER, packets.EOF_MARKER]))
def test_ok_round_trip(ok: Ok, marker: int) -> None:
    for capabilities in (MODERN, TRACKING):
        assert packets.parse_ok(packets.build_ok(ok, capabilities, marker), capabilities) == ok


@given(st.binary(max_size=20), st.binary(min_size=1, max_size=20))
def test_ok_with_session_state(info: bytes, state: bytes) -> None:
    ok = Ok(status=ServerStatus.SESSION_STATE_CHANGED, info=info, session_state=state)
    assert packets.parse_ok(packets.build_ok(ok, TRACKING), TRACKING) == ok


def test_eof_forms() -> None:
    eof = Eof(warnings=3, status=ServerStatus.AUTOCOMMIT)
    assert packets.parse_eof(packets.build_eof(eof)) == eof
    assert packets.parse_eof(b"\xfe") == Eof()
    old, new = (packets.build_end(ServerStatus.AUTOCOMMIT, c) for c in (Capability.PROTOCOL_41, MODERN))
    assert (len(old), len(new)) == (5, 7)
    assert packets.is_end(old, Capability.PROTOCOL_41)
    assert packets.is_end(new, MODERN)


def test_a_row_that_starts_with_the_marker_is_not_an_end() -> None:
    row = b"\xfe" + (1 << 24).to_bytes(8, "little") + bytes(1 << 24)
    assert not packets.is_end(row, Capability.PROTOCOL_41)
    assert not packets.is_end(row, MODERN)


@given(
    st.integers(0, 0xFFFF),
    st.one_of(st.none(), st.text("0123456789HY", min_size=5, max_size=5)),
    st.text().filter(lambda text: not text.startswith("#")),
)
def test_err_round_trip(code: int, sqlstate: str | None, message: str) -> None:
    error = packets.parse_err(packets.build_err(ServerError(code, sqlstate, message)))
    assert (error.code, error.sqlstate, error.message) == (code, sqlstate, message)


def test_err_survives_a_process_border() -> None:
    error = pickle.loads(pickle.dumps(ServerError(1236, "HY000", "purged")))
    assert (error.code, error.sqlstate, error.message) == (1236, "HY000", "purged")


@given(st.binary(max_size=40))
def test_hostile_bytes_raise_nothing_but_engine_errors(payload: bytes) -> None:
    for parse in (
        lambda: packets.parse_ok(payload, MODERN),
        lambda: packets.parse_ok(b"\0" + payload, TRACKING),
        lambda: packets.parse_eof(b"\xfe" + payload),
        lambda: packets.parse_err(b"\xff" + payload),
    ):
        with contextlib.suppress(EngineError):
            parse()
