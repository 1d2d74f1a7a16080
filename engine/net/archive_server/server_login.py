"""The server's side of the connection phase, for the archive server.

`log_in` is a generator: it yields each payload to send and is sent the client's answers; it returns a `Login`
or raises `ServerError`. If the client begins with another authentication method than those implemented here,
one of these is requested.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Generator

from engine.dataclass import dataclass
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
    """The digest that is stored instead of the password."""
    accepts: Callable[[bytes, bytes, bytes], bool]


_VERIFIERS = {
    NATIVE: _Verifier(lambda text: hashlib.sha1(hashlib.sha1(text).digest()).digest(), native_accepts),
    SHA2: _Verifier(lambda text: hashlib.sha256(hashlib.sha256(text).digest()).digest(), sha2_accepts),
}


class Account:
    """The only account that can log in; digests are stored instead of its password."""

    def __init__(self, user: str, password: str) -> None:
        self.user = user
        self._empty = not password
        self._stored = {plugin: verifier.digest(password.encode()) for plugin, verifier in _VERIFIERS.items()}

    def accepts(self, user: str, plugin: str, nonce: bytes, proof: bytes) -> bool:
        """Whether `user` is this user and `proof` proves its password."""
        known = hmac.compare_digest(user.encode(), self.user.encode())
        if self._empty or proof in _EMPTY_PROOFS:
            return known and self._empty and proof in _EMPTY_PROOFS
        return _VERIFIERS[plugin].accepts(self._stored[plugin], nonce, proof) and known

    def certificate_proof(self, plugin: str, nonce: bytes, fingerprint: bytes) -> bytes:
        """The proof for clients of MariaDB 11.4 or later that the certificate's owner knows the password.

        The OK packet contains it. Empty for an empty password, which proves nothing.
        """
        if self._empty:
            return b""
        digest = hashlib.sha256(self._stored[plugin] + nonce + fingerprint).hexdigest().upper()
        return lenenc_bytes(b"\x01" + digest.encode())


@dataclass(frozen=True, slots=True)
class Login:
    """A completed login. `final_payloads`: the payloads that end it, still to be sent, in order."""

    response: HandshakeResponse
    capabilities: Capability
    """The capabilities that both sides have."""
    final_payloads: tuple[bytes, ...]


def make_greeting(server_version: str, flavor: str, version: tuple[int, ...], connection_id: int) -> Greeting:
    """The greeting of a server of that version, with that version's default authentication method."""
    mysql = flavor == "mysql"
    return Greeting(
        # Old replication clients recognize MariaDB only with this prefix.
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
    """Log in a client that connects from the host `client`; without an account every login is accepted.

    `fingerprint`: that of the server's certificate. The caller begins TLS if the client requests it. Raises
    `ProtocolError` for a malformed handshake response, `ServerError` for a client that is refused.
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
    proof_of_certificate = b""
    if account is not None and greeting.flavor == "mariadb" and Capability.SSL in capabilities:
        proof_of_certificate = account.certificate_proof(plugin, nonce, fingerprint)
    ok = build_ok(Ok(status=STATUS, info=proof_of_certificate), capabilities)
    if plugin == SHA2 and proof not in _EMPTY_PROOFS:
        return Login(response, capabilities, (uint_bytes(MORE_DATA_MARKER, 1) + SHA2_FAST_SUCCESS, ok))
    return Login(response, capabilities, (ok,))


def _make_nonce() -> bytes:
    # A NUL ends the nonce for clients, and for some a byte that is not ASCII does.
    return bytes(33 + secrets.randbelow(94) for _ in range(NONCE_SIZE))
