"""Greeting, handshake response and authentication switch, from every generation of servers."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.net.protocol import handshake
from engine.net.protocol.capabilities import Capability, MariaDBCapability, ServerStatus
from engine.net.protocol.handshake import Greeting, HandshakeResponse
from engine.net.protocol.wire import ProtocolError

BASE = Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION
NONCE = bytes(range(1, 21))
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
methods = names.filter(lambda name: len(name.encode()) <= 64)
"""Names of authentication methods; the client takes no longer ones."""


@given(
    st.builds(
        Greeting,
        server_version=names.filter(lambda name: not name.startswith("5.5.5-")),
        connection_id=st.integers(0, 0xFFFFFFFF),
        nonce=st.binary(min_size=20, max_size=20).filter(lambda nonce: 0 not in nonce),
        capabilities=st.integers(0, 0xFFFFFFFF).map(
            lambda bits: Capability(bits) | BASE | Capability.PLUGIN_AUTH
        ),
        charset=st.integers(0, 255),
        status=st.integers(0, 0x7FF7).map(ServerStatus),
        auth_plugin=methods,
    )
)
def test_greeting_round_trip(greeting: Greeting) -> None:
    assert handshake.parse_greeting(handshake.build_greeting(greeting)) == greeting


def test_greeting_of_mysql_41() -> None:
    payload = (
        b"\x0a4.1.22-log\0" + b"\x07\0\0\0" + NONCE[:8] + b"\0" + (0xA22C).to_bytes(2, "little")
        + b"\x08" + b"\x02\0" + bytes(13) + NONCE[8:] + b"\0"
    )  # fmt: skip
    greeting = handshake.parse_greeting(payload)
    assert greeting.nonce == NONCE
    assert greeting.auth_plugin == "mysql_native_password"
    assert (greeting.flavor, greeting.version, greeting.connection_id) == ("mysql", (4, 1, 22), 7)


def test_greeting_of_mariadb() -> None:
    greeting = Greeting(
        server_version="5.5.5-10.11.18-MariaDB-log",
        connection_id=5,
        nonce=NONCE,
        capabilities=BASE | Capability.PLUGIN_AUTH,
        mariadb_capabilities=MariaDBCapability.PROGRESS | MariaDBCapability.CACHE_METADATA,
    )
    parsed = handshake.parse_greeting(handshake.build_greeting(greeting))
    assert (parsed.server_version, parsed.version) == ("10.11.18-MariaDB-log", (10, 11, 18))
    assert parsed.flavor == "mariadb"
    assert parsed.mariadb_capabilities == greeting.mariadb_capabilities


def test_servers_too_old_or_none_at_all_are_named() -> None:
    old = b"\x0a4.0.30\0" + bytes(4) + NONCE[:8] + b"\0" + b"\x2c\x20" + bytes(16)
    with pytest.raises(ProtocolError, match=r"4\.0\.30, older than 4\.1"):
        handshake.parse_greeting(old)
    with pytest.raises(ProtocolError, match="protocol version 83"):
        handshake.parse_greeting(b"SSH-2.0-OpenSSH")


def test_the_nonce_is_never_printed() -> None:
    greeting = Greeting("8.0", 1, NONCE, BASE)
    response = HandshakeResponse(BASE, "u", b"proof")
    assert str(NONCE) not in repr(greeting)
    assert "proof" not in repr(response)


@pytest.mark.parametrize("lenenc", [True, False])
@given(
    names,
    st.binary(max_size=255),
    st.one_of(st.none(), names),
    names,
    st.dictionaries(names, names, max_size=4),
)
def test_response_round_trip(
    lenenc: bool, user: str, proof: bytes, database: str | None, plugin: str, attributes: dict[str, str]
) -> None:
    capabilities = BASE | Capability.PLUGIN_AUTH | Capability.CONNECT_ATTRS
    if lenenc:
        capabilities |= Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA
    if database is not None:
        capabilities |= Capability.CONNECT_WITH_DB
    plugin = plugin or "mysql_native_password"
    response = HandshakeResponse(
        capabilities, user, proof, database=database, auth_plugin=plugin, attributes=attributes
    )
    assert handshake.parse_response(handshake.build_response(response)) == response


def test_response_has_the_documented_layout() -> None:
    response = HandshakeResponse(
        BASE | Capability.CONNECT_WITH_DB | Capability.PLUGIN_AUTH,
        "repl",
        bytes(20),
        1 << 24,
        33,
        "shop",
        None,
    )
    assert handshake.build_response(response) == (
        (0x88208).to_bytes(4, "little") + b"\0\0\0\x01" + b"\x21" + bytes(23) + b"repl\0"
        + b"\x14" + bytes(20) + b"shop\0" + b"mysql_native_password\0"
    )  # fmt: skip
    assert handshake.build_ssl_request(response) == handshake.build_response(response)[:32]


@given(methods.filter(bool), st.binary(min_size=20, max_size=20).filter(lambda nonce: 0 not in nonce))
def test_auth_switch_round_trip(plugin: str, nonce: bytes) -> None:
    payload = handshake.build_auth_switch(plugin, nonce)
    assert handshake.is_auth_switch(payload)
    assert handshake.parse_auth_switch(payload) == (plugin, nonce)


def test_a_next_factor_is_one_only_where_both_sides_know_of_factors() -> None:
    payload = b"\x02caching_sha2_password\0" + NONCE + b"\0"
    assert handshake.is_next_factor(payload, Capability.MULTI_FACTOR_AUTHENTICATION)
    assert not handshake.is_next_factor(payload, BASE)
    assert handshake.parse_next_factor(payload) == ("caching_sha2_password", NONCE)


@pytest.mark.parametrize("size", [18, 32])
def test_a_nonce_without_a_nul_after_it_may_end_in_one(size: int) -> None:
    nonce = bytes(range(1, size)) + b"\0"
    assert handshake.parse_auth_switch(b"\xfeparsec\0" + nonce) == ("parsec", nonce)


def test_the_level_of_compression_travels_with_zstd_only() -> None:
    response = HandshakeResponse(BASE | Capability.ZSTD_COMPRESSION, "u", b"proof", zstd_level=7)
    assert handshake.build_response(response)[-1] == 7
    assert handshake.parse_response(handshake.build_response(response)).zstd_level == 7
    plain = HandshakeResponse(BASE, "u", b"proof", zstd_level=7)
    assert handshake.build_response(plain)[-5:] == b"proof"


def test_a_bare_auth_switch_asks_for_the_old_password() -> None:
    assert handshake.parse_auth_switch(b"\xfe") == ("mysql_old_password", b"")


@given(st.binary(max_size=120))
def test_hostile_bytes_raise_nothing_but_engine_errors(payload: bytes) -> None:
    whole = handshake.build_greeting(Greeting("8.0.36", 1, NONCE, BASE | Capability.PLUGIN_AUTH))
    response = handshake.build_response(HandshakeResponse(BASE | Capability.CONNECT_ATTRS, "u", NONCE))
    for parse, valid in (
        (handshake.parse_greeting, whole),
        (handshake.parse_response, response),
        (handshake.parse_auth_switch, b"\xfe"),
        (handshake.parse_next_factor, b"\x02"),
    ):
        for hostile in (payload, valid[:34] + payload, valid[: len(payload)]):
            with contextlib.suppress(EngineError):
                parse(hostile)
