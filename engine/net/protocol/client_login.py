"""The client's side of the connection phase: from the server's greeting to its OK packet.

`log_in` is a generator: it yields each payload to send (None if the next packet is the server's) and is sent
each of the server's answers. The caller determines the shared capabilities before, because encryption begins
between the greeting and the first packet with the user's name.
"""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Generator, Mapping, Sequence
from dataclasses import field

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.net.protocol.auth import Credentials, begin, first_method
from engine.net.protocol.capabilities import Capability
from engine.net.protocol.handshake import (
    Greeting,
    HandshakeResponse,
    build_response,
    build_ssl_request,
    is_auth_switch,
    is_next_factor,
    parse_auth_switch,
    parse_next_factor,
)
from engine.net.protocol.packets import MORE_DATA_MARKER, Ok, is_err, is_ok, parse_err, parse_ok
from engine.net.protocol.wire import ProtocolError

MAX_ROUNDS = 16
"""Upper limit of the server's answers in one login; a valid login takes fewer."""
UTF8MB4_SINCE = (5, 5, 3)
_UTF8MB4_GENERAL_CI = 45
_UTF8_GENERAL_CI = 33
_WANTED = (
    Capability.LONG_PASSWORD
    | Capability.LONG_FLAG
    | Capability.PROTOCOL_41
    | Capability.TRANSACTIONS
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA
    | Capability.CONNECT_ATTRS
    | Capability.DEPRECATE_EOF
    | Capability.MULTI_FACTOR_AUTHENTICATION
)


@dataclass(frozen=True, slots=True)
class Account:
    """The account to log in with. `passwords`: one per authentication factor, in the server's order."""

    user: str
    passwords: Sequence[bytes] = field(default=(), repr=False)
    public_key: bytes | None = field(default=None, repr=False)
    """The server's RSA public key in PEM form; None asks the server for it."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Connection attributes, which servers show in performance_schema."""


def shared_capabilities(greeting: Greeting, extra: Capability = Capability.NONE) -> Capability:
    """The capabilities that both sides have, and `extra`, which the caller has checked in the greeting."""
    return (_WANTED & greeting.capabilities) | extra


def ssl_request(greeting: Greeting, capabilities: Capability) -> bytes:
    """The packet that is sent in clear before TLS begins; it contains nothing about the user."""
    return build_ssl_request(_response(greeting, capabilities, Account("")))


def log_in(
    greeting: Greeting, capabilities: Capability, account: Account, *, local: bool = False
) -> Generator[bytes | None, bytes, Ok]:
    """Log in with `capabilities`; TLS, if it is among them, is already active. `local`: over a unix socket.

    Returns the server's OK packet. Raises `ServerError` if the server refuses the login, `EngineError` if the
    client refuses what the server requests, and `ProtocolError` for a malformed or unexpected packet.
    """
    factor = 0

    def credentials(nonce: bytes) -> Credentials:
        password = account.passwords[factor] if factor < len(account.passwords) else b""
        return Credentials(password, nonce, Capability.SSL in capabilities, local, account.public_key)

    plugin = first_method(greeting.auth_plugin)
    exchange = begin(plugin, credentials(greeting.nonce))
    reply: bytes | None = build_response(
        _response(greeting, capabilities, account, plugin=plugin, proof=next(exchange))
    )
    for _ in range(MAX_ROUNDS):
        payload = yield reply
        if is_ok(payload):
            return parse_ok(payload, capabilities)
        if is_err(payload):
            raise parse_err(payload)
        if is_auth_switch(payload):
            plugin, nonce = parse_auth_switch(payload)
            exchange = begin(plugin, credentials(nonce))
            reply = next(exchange)
        elif is_next_factor(payload, capabilities):
            factor += 1
            _require_password(account, factor)
            plugin, nonce = parse_next_factor(payload)
            exchange = begin(plugin, credentials(nonce))
            reply = next(exchange)
        else:
            # Some servers send the marker only before data that could be mistaken for another packet.
            data = payload[1:] if payload[:1] == bytes([MORE_DATA_MARKER]) else payload
            reply = None
            with contextlib.suppress(StopIteration):
                reply = exchange.send(data)
    raise ProtocolError(f"authentication did not finish after {MAX_ROUNDS} answers of the server")


def _require_password(account: Account, factor: int) -> None:
    if factor >= len(account.passwords):
        raise EngineError(
            f"the server requests password number {factor + 1} of user '{account.user}': give it with "
            f"--password{factor + 1}-env or --password{factor + 1}-file"
        )


def _response(
    greeting: Greeting, capabilities: Capability, account: Account, plugin: str = "", proof: bytes = b""
) -> HandshakeResponse:
    ours = {"_client_name": "binlog-engine", "_pid": str(os.getpid()), "_os": platform.system()}
    return HandshakeResponse(
        capabilities=capabilities,
        user=account.user,
        auth_response=proof,
        charset=_UTF8_GENERAL_CI if greeting.version < UTF8MB4_SINCE else _UTF8MB4_GENERAL_CI,
        auth_plugin=plugin,
        attributes={**ours, **account.attributes},
    )
