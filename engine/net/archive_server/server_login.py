"""The server's side of the connection phase, for the source that we serve.

A generator yields each payload to send and is sent the client's answers; it ends with who has logged in, or
with a `ServerError`. Clients begin with whatever method they like best; one that we can check is asked for.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Generator
from dataclasses import dataclass

from engine.net.protocol.auth import SHA2_FAST_SUCCESS, native_accepts, sha2_accepts
from engine.net.protocol.capabilities import Capability, ServerStatus
from engine.net.protocol.handshake import (
    NONCE_SIZE,
    Greeting,
    HandshakeResponse,
    build_auth_switch,
    build_greeting,
    parse_response,
)
from engine.net.protocol.packets import MORE_DATA_MARKER, Ok, ServerError, build_ok
from engine.net.protocol.wire import lenenc_bytes, uint_bytes

NATIVE, SHA2 = "mysql_native_password", "caching_sha2_password"
CAPABILITIES = (
    Capability.LONG_PASSWORD
    | Capability.FOUND_ROWS
    | Capability.LONG_FLAG
    | Capability.CONNECT_WITH_DB
    | Capability.IGNORE_SPACE
    | Capability.PROTOCOL_41
    | Capability.INTERACTIVE
    | Capability.SSL
    | Capability.TRANSACTIONS
    | Capability.SECURE_CONNECTION
    | Capability.MULTI_RESULTS
    | Capability.PLUGIN_AUTH
    | Capability.CONNECT_ATTRS
    | Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA
    | Capability.DEPRECATE_EOF
)
STATUS = ServerStatus.AUTOCOMMIT
_SHA2_SINCE = (8, 0)
_EMPTY_PROOFS = (b"", b"\0")
_UTF8MB4_GENERAL_CI = 45


@dataclass(frozen=True, slots=True)
class _Verifier:
    digest: Callable[[bytes], bytes]
    """What is kept of a password."""
    accepts: Callable[[bytes, bytes, bytes], bool]


_VERIFIERS = {
    NATIVE: _Verifier(lambda text: hashlib.sha1(hashlib.sha1(text).digest()).digest(), native_accepts),
    SHA2: _Verifier(lambda text: hashlib.sha256(hashlib.sha256(text).digest()).digest(), sha2_accepts),
}


class Account:
    """The one user that may log in; of the password only digests are kept."""

    def __init__(self, user: str, password: str) -> None:
        self.user = user
        self._empty = not password
        self._stored = {plugin: verifier.digest(password.encode()) for plugin, verifier in _VERIFIERS.items()}

    def accepts(self, user: str, plugin: str, nonce: bytes, proof: bytes) -> bool:
        """Whether `proof` shows that the client is this user."""
        known = hmac.compare_digest(user.encode(), self.user.encode())
        if self._empty or proof in _EMPTY_PROOFS:
            return known and self._empty and proof in _EMPTY_PROOFS
        return _VERIFIERS[plugin].accepts(self._stored[plugin], nonce, proof) and known

    def vouch(self, plugin: str, nonce: bytes, fingerprint: bytes) -> bytes:
        """What shows to a client of MariaDB 11.4 or later that who knows its password has this certificate.

        The OK packet bears it. Nothing for a password that everybody knows.
        """
        if self._empty:
            return b""
        digest = hashlib.sha256(self._stored[plugin] + nonce + fingerprint).hexdigest().upper()
        return lenenc_bytes(b"\x01" + digest.encode())


@dataclass(frozen=True, slots=True)
class Login:
    """A client that is in. `farewell`: the payloads that tell it so, in order."""

    response: HandshakeResponse
    capabilities: Capability
    """What both sides can do."""
    farewell: tuple[bytes, ...]


def make_greeting(server_version: str, flavor: str, version: tuple[int, ...], connection_id: int) -> Greeting:
    """The greeting of a server of that version: its default method is the one such servers have."""
    mysql = flavor == "mysql"
    return Greeting(
        # Old clients of MariaDB's replication know it only behind this prefix.
        server_version=server_version if mysql or version >= (11,) else f"5.5.5-{server_version}",
        connection_id=connection_id,
        nonce=_make_nonce(),
        capabilities=CAPABILITIES,
        charset=_UTF8MB4_GENERAL_CI,
        status=STATUS,
        auth_plugin=SHA2 if mysql and version >= _SHA2_SINCE else NATIVE,
    )


def log_in(
    greeting: Greeting, account: Account | None, client: str, fingerprint: bytes
) -> Generator[bytes, bytes, Login]:
    """Log in a client that connects from `client`; without an account everybody is let in.

    `fingerprint`: of the certificate that the client is shown where it asks for TLS, which the caller begins.
    Raises `ProtocolError` for what is no handshake response, `ServerError` for a client that is refused.
    """
    response = parse_response((yield build_greeting(greeting)))
    plugin, nonce, proof = response.auth_plugin or NATIVE, greeting.nonce, response.auth_response
    if response.auth_plugin not in (None, greeting.auth_plugin):
        plugin, nonce = plugin if plugin in _VERIFIERS else NATIVE, _make_nonce()
        proof = yield build_auth_switch(plugin, nonce)
    if account is not None and not account.accepts(response.user, plugin, nonce, proof):
        used = "NO" if proof in _EMPTY_PROOFS else "YES"
        message = f"Access denied for user '{response.user}'@'{client}' (using password: {used})"
        raise ServerError(1045, "28000", message)
    capabilities = response.capabilities & greeting.capabilities
    vouched = b""
    if account is not None and greeting.flavor == "mariadb" and Capability.SSL in capabilities:
        vouched = account.vouch(plugin, nonce, fingerprint)
    ok = build_ok(Ok(status=STATUS, info=vouched), capabilities)
    if plugin == SHA2 and proof not in _EMPTY_PROOFS:
        return Login(response, capabilities, (uint_bytes(MORE_DATA_MARKER, 1) + SHA2_FAST_SUCCESS, ok))
    return Login(response, capabilities, (ok,))


def _make_nonce() -> bytes:
    # Clients stop at a NUL, and some at bytes that are not ASCII.
    return bytes(33 + secrets.randbelow(94) for _ in range(NONCE_SIZE))
