"""The client's side of the connection phase, from bytes: switches, factors, servers that misbehave."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Generator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.net.protocol import auth
from engine.net.protocol.capabilities import Capability, ServerStatus
from engine.net.protocol.client_login import Account, log_in, shared_capabilities, ssl_request
from engine.net.protocol.handshake import Greeting, build_auth_switch, parse_response
from engine.net.protocol.packets import Ok, ServerError, build_err, build_ok
from engine.net.protocol.wire import ProtocolError

NONCE, OTHER_NONCE = bytes(range(1, 21)), bytes(range(101, 121))
PASSWORDS = (b"first horse", b"second horse", b"third horse")
OFFERED = (
    Capability.PROTOCOL_41
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.MULTI_FACTOR_AUTHENTICATION
    | Capability.SSL
    | Capability.COMPRESS
)
GREETING = Greeting("8.0.36", 7, NONCE, OFFERED, auth_plugin="caching_sha2_password")
CAPABILITIES = shared_capabilities(GREETING)
ACCOUNT = Account("u", PASSWORDS)
OK = build_ok(Ok(status=ServerStatus.AUTOCOMMIT), CAPABILITIES)


def next_factor(plugin: str, nonce: bytes = b"") -> bytes:
    return b"\x02" + plugin.encode() + b"\0" + nonce + b"\0"


def outcome(login: Generator[bytes | None, bytes, Ok], payload: bytes) -> Ok:
    with pytest.raises(StopIteration) as end:
        login.send(payload)
    return end.value.value


def test_what_goes_out_first() -> None:
    first = next(log_in(GREETING, CAPABILITIES, ACCOUNT))
    assert first is not None
    response = parse_response(first)
    assert (response.user, response.auth_plugin) == ("u", "caching_sha2_password")
    assert response.auth_response == auth.sha2_scramble(PASSWORDS[0], NONCE)
    assert response.attributes == {}
    assert not response.capabilities & (Capability.SSL | Capability.COMPRESS)


def test_before_tls_nothing_about_the_user_is_sent() -> None:
    request = ssl_request(GREETING, CAPABILITIES | Capability.SSL)
    assert len(request) == 32
    assert int.from_bytes(request[:4], "little") == CAPABILITIES | Capability.SSL


def test_a_server_may_switch_to_another_method() -> None:
    login = log_in(GREETING, CAPABILITIES, ACCOUNT)
    next(login)
    reply = login.send(build_auth_switch("mysql_native_password", OTHER_NONCE))
    assert reply == auth.native_scramble(PASSWORDS[0], OTHER_NONCE)
    assert outcome(login, OK).status == ServerStatus.AUTOCOMMIT


def test_each_factor_has_its_password() -> None:
    login = log_in(GREETING, CAPABILITIES, ACCOUNT, local=True)
    next(login)
    assert login.send(b"\x01\x03") is None, "the fast path asks for nothing more"
    assert login.send(next_factor("mysql_clear_password")) == PASSWORDS[1] + b"\0"
    reply = login.send(next_factor("mysql_native_password", OTHER_NONCE))
    assert reply == auth.native_scramble(PASSWORDS[2], OTHER_NONCE)
    assert isinstance(outcome(login, OK), Ok)


def test_a_factor_in_clear_wants_a_safe_connection() -> None:
    login = log_in(GREETING, CAPABILITIES, ACCOUNT)
    next(login)
    with pytest.raises(EngineError, match="connect with --tls required"):
        login.send(next_factor("mysql_clear_password"))


def test_a_factor_without_a_password_is_named() -> None:
    login = log_in(GREETING, CAPABILITIES, Account("u", PASSWORDS[:1]), local=True)
    next(login)
    with pytest.raises(EngineError, match="--password2-env or --password2-file"):
        login.send(next_factor("mysql_clear_password"))


def test_a_refusal_is_the_servers() -> None:
    login = log_in(GREETING, CAPABILITIES, ACCOUNT)
    next(login)
    with pytest.raises(ServerError, match="1045"):
        login.send(build_err(ServerError(1045, "28000", "Access denied")))


def test_a_login_without_end_is_ended() -> None:
    login = log_in(GREETING, CAPABILITIES, ACCOUNT)
    next(login)
    with pytest.raises(ProtocolError, match="did not finish"):
        for _ in range(99):
            login.send(build_auth_switch("mysql_native_password", NONCE))


payloads = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(sorted(auth.METHODS)).map(lambda plugin: build_auth_switch(plugin, NONCE)),
    st.sampled_from(sorted(auth.METHODS)).map(lambda plugin: next_factor(plugin, bytes(31))),
    st.sampled_from([b"\x01\x04", b"\x01\x03", b"\xfe", b"\x01", b"P\0" + bytes(18)]),
)


@given(st.lists(payloads, max_size=6))
def test_no_server_draws_a_password_out_of_an_open_connection(answers: list[bytes]) -> None:
    login = log_in(GREETING, CAPABILITIES, ACCOUNT)
    sent = [next(login) or b""]
    try:
        for answer in answers:
            sent.append(login.send(answer) or b"")
    except (StopIteration, EngineError) as end:
        assert "horse" not in str(end)
    assert not any(b"horse" in payload for payload in sent)


@given(st.lists(payloads, max_size=6))
def test_only_an_ok_ends_the_login(answers: list[bytes]) -> None:
    login = log_in(GREETING, CAPABILITIES, ACCOUNT)
    next(login)
    with contextlib.suppress(EngineError):
        for answer in answers:
            if answer[:1] != b"\0":
                login.send(answer)


def test_an_account_is_never_printed() -> None:
    assert "horse" not in repr(ACCOUNT)
    assert hashlib.sha256(PASSWORDS[0]).hexdigest() not in repr(ACCOUNT)
