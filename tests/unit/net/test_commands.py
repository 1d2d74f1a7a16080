"""Commands: what a client builds a server reads, and the bytes are those of the protocol's documentation."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.net.protocol import commands
from engine.net.protocol.commands import BinlogDump, BinlogDumpGtid, RegisterSlave

uint16, uint32 = st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)


@given(st.builds(RegisterSlave, uint32, names, names, names, uint16, uint32, uint32))
def test_register_round_trip(command: RegisterSlave) -> None:
    assert RegisterSlave.parse(command.build()) == command


@given(st.builds(BinlogDump, names, uint32, uint32, uint16))
def test_dump_round_trip(command: BinlogDump) -> None:
    assert BinlogDump.parse(command.build()) == command


@given(
    st.builds(BinlogDumpGtid, uint32, st.binary(max_size=200), names, st.integers(0, (1 << 64) - 1), uint16)
)
def test_dump_gtid_round_trip(command: BinlogDumpGtid) -> None:
    assert BinlogDumpGtid.parse(command.build()) == command


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_query_round_trip(sql: str) -> None:
    assert commands.parse_query(commands.build_query(sql)) == sql


def test_documented_bytes() -> None:
    assert commands.build_quit() == b"\x01"
    assert BinlogDump("binlog.000007", 4, 0x1267, commands.BINLOG_DUMP_NON_BLOCK).build() == (
        b"\x12" + b"\x04\0\0\0" + b"\x01\0" + b"\x67\x12\0\0" + b"binlog.000007"
    )
    assert RegisterSlave(0x1267, "engine", port=3306).build() == (
        b"\x15" + b"\x67\x12\0\0" + b"\x06engine" + b"\0" + b"\0" + b"\xea\x0c" + bytes(8)
    )


@given(st.sampled_from([RegisterSlave, BinlogDump, BinlogDumpGtid]), st.binary(max_size=60))
def test_hostile_bytes_raise_nothing_but_engine_errors(
    kind: type[BinlogDumpGtid | BinlogDump | RegisterSlave], payload: bytes
) -> None:
    code = {RegisterSlave: 0x15, BinlogDump: 0x12, BinlogDumpGtid: 0x1E}[kind]
    for hostile in (payload, bytes([code]) + payload):
        with contextlib.suppress(EngineError):
            kind.parse(hostile)


def test_another_command_is_not_taken_for_this_one() -> None:
    with pytest.raises(EngineError, match="COM_BINLOG_DUMP"):
        BinlogDump.parse(commands.build_query("SELECT 1"))
