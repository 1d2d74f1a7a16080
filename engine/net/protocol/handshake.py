"""The connection phase's packets: greeting, handshake response, authentication switch and next factor.

Each packet has its parser and its builder here, so that the client and the archive server share one layout.
Layouts: MySQL's protocol pages "Protocol::HandshakeV10", "Protocol::HandshakeResponse41" and
"Protocol::AuthSwitchRequest"; MariaDB's extended capabilities: its page "Connection".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from engine.dataclass import dataclass
from engine.net.protocol.capabilities import Capability, MariaDBCapability, ServerStatus
from engine.net.protocol.packets import EOF_MARKER, NEXT_FACTOR_MARKER
from engine.net.protocol.wire import (
    ProtocolError,
    Reader,
    lenenc_bytes,
    lenenc_int_bytes,
    nul_bytes,
    short_bytes,
    uint_bytes,
)

Flavor = Literal["mysql", "mariadb"]

PROTOCOL_VERSION = 10
NONCE_SIZE = 20
_FIRST_NONCE_SIZE = 8
_SSL_REQUEST_SIZE = 32
DEFAULT_PLUGIN = "mysql_native_password"
_MARIADB_REPLICATION_PREFIX = "5.5.5-"
_LONGEST_VERSION = 256
"""Bytes; servers have at most 60."""
_LONGEST_PLUGIN = 64
"""Bytes of an authentication method's name, as in the servers."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """The server's first packet."""

    server_version: str
    """As the server sends it, without the prefix `5.5.5-` that MariaDB adds for old clients."""
    connection_id: int
    nonce: bytes = field(repr=False)
    """The random bytes that the password's proof is computed with: 20, or 8 from servers before 4.1."""
    capabilities: Capability
    charset: int = 0
    status: ServerStatus = ServerStatus.NONE
    auth_plugin: str = DEFAULT_PLUGIN
    mariadb_capabilities: MariaDBCapability = MariaDBCapability.NONE

    @property
    def flavor(self) -> Flavor:
        """MySQL or MariaDB; Percona Server and other builds of MySQL are MySQL."""
        named = "mariadb" in self.server_version.lower()
        return "mariadb" if named or self.mariadb_capabilities else "mysql"

    @property
    def version(self) -> tuple[int, ...]:
        """The numbers of the version, as many as it has: (9, 7, 0)."""
        return version_tuple(self.server_version)


def version_tuple(server_version: str) -> tuple[int, ...]:
    """The numbers that a version starts with."""
    match = re.match(r"[0-9]{1,9}(\.[0-9]{1,9})*", server_version)
    return tuple(int(number) for number in match.group().split(".")) if match else ()


def parse_greeting(payload: bytes) -> Greeting:
    """The initial handshake packet; raises `ProtocolError`, also for servers older than 4.1."""
    reader = Reader(payload, "greeting")
    protocol = reader.uint(1)
    if protocol != PROTOCOL_VERSION:
        raise ProtocolError(
            f"the server uses protocol version {protocol}, not {PROTOCOL_VERSION}: it is not a MySQL server, "
            "or is older than 3.21"
        )
    server_version = reader.nul_bytes().decode("utf-8", "replace")
    if len(server_version) > _LONGEST_VERSION:
        raise reader.fail(f"the server's version has {len(server_version)} characters")
    connection_id = reader.uint(4)
    nonce = reader.take(_FIRST_NONCE_SIZE)
    reader.take(1)
    capabilities = Capability(reader.uint(2))
    if Capability.PROTOCOL_41 not in capabilities:
        raise ProtocolError(
            f"the server has version {server_version}, older than 4.1, the oldest version that is supported"
        )
    charset, status = reader.uint(1), ServerStatus(reader.uint(2))
    capabilities |= Capability(reader.uint(2) << 16)
    nonce_size = reader.uint(1)
    reader.take(6)
    extended = MariaDBCapability(reader.uint(4))
    plugin = DEFAULT_PLUGIN
    if Capability.SECURE_CONNECTION in capabilities:
        nonce += reader.take(min(max(13, nonce_size - _FIRST_NONCE_SIZE), reader.remaining))
    if Capability.PLUGIN_AUTH in capabilities:
        plugin = _plugin(reader)
    return Greeting(
        server_version=server_version.removeprefix(_MARIADB_REPLICATION_PREFIX),
        connection_id=connection_id,
        nonce=nonce[:NONCE_SIZE],
        capabilities=capabilities,
        charset=charset,
        status=status,
        auth_plugin=plugin,
        mariadb_capabilities=MariaDBCapability.NONE if Capability.LONG_PASSWORD in capabilities else extended,
    )


def build_greeting(greeting: Greeting) -> bytes:
    """The packet that `parse_greeting` reads."""
    nonce, capabilities = greeting.nonce, greeting.capabilities
    return b"".join(
        (
            uint_bytes(PROTOCOL_VERSION, 1),
            nul_bytes(greeting.server_version.encode()),
            uint_bytes(greeting.connection_id, 4),
            nonce[:_FIRST_NONCE_SIZE] + b"\0",
            uint_bytes(capabilities & 0xFFFF, 2),
            uint_bytes(greeting.charset, 1),
            uint_bytes(greeting.status, 2),
            uint_bytes(capabilities >> 16, 2),
            uint_bytes(len(nonce) + 1, 1),
            bytes(6),
            uint_bytes(greeting.mariadb_capabilities, 4),
            nul_bytes(nonce[_FIRST_NONCE_SIZE:]),
            nul_bytes(greeting.auth_plugin.encode()),
        )
    )


@dataclass(frozen=True, slots=True)
class HandshakeResponse:
    """The client's answer to the greeting. `capabilities` determine which of the later fields are sent."""

    capabilities: Capability
    user: str
    auth_response: bytes = field(repr=False)
    max_packet: int = 1 << 30
    charset: int = 45
    database: str | None = None
    auth_plugin: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    zstd_level: int = 3
    """The server's compression level, 1 to 22; sent only with ZSTD_COMPRESSION."""


def build_ssl_request(response: HandshakeResponse) -> bytes:
    """The packet that requests TLS: only the response's fixed part, which contains nothing secret."""
    return b"".join(
        (
            uint_bytes(response.capabilities, 4),
            uint_bytes(response.max_packet, 4),
            uint_bytes(response.charset, 1),
            bytes(23),
        )
    )


def is_ssl_request(payload: bytes) -> bool:
    """Whether the client requests TLS before it sends the user's name."""
    capabilities = int.from_bytes(payload[:4], "little")
    return len(payload) == _SSL_REQUEST_SIZE and bool(capabilities & Capability.SSL)


def build_response(response: HandshakeResponse) -> bytes:
    """The handshake response of protocol 4.1; raises `ValueError` for a name that contains a NUL."""
    capabilities = response.capabilities
    parts = [build_ssl_request(response), nul_bytes(response.user.encode())]
    if Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA in capabilities:
        parts.append(lenenc_bytes(response.auth_response))
    else:
        parts.append(short_bytes(response.auth_response))
    if Capability.CONNECT_WITH_DB in capabilities:
        parts.append(nul_bytes((response.database or "").encode()))
    if Capability.PLUGIN_AUTH in capabilities:
        parts.append(nul_bytes((response.auth_plugin or DEFAULT_PLUGIN).encode()))
    if Capability.CONNECT_ATTRS in capabilities:
        pairs = [lenenc_bytes(text.encode()) for pair in response.attributes.items() for text in pair]
        parts += lenenc_int_bytes(sum(map(len, pairs))), *pairs
    if Capability.ZSTD_COMPRESSION in capabilities:
        parts.append(uint_bytes(response.zstd_level, 1))
    return b"".join(parts)


def parse_response(payload: bytes) -> HandshakeResponse:
    """Parse a handshake response of protocol 4.1; raises `ProtocolError`."""
    reader = Reader(payload, "handshake response")
    capabilities = Capability(reader.uint(4))
    if Capability.PROTOCOL_41 not in capabilities:
        raise ProtocolError("the client uses a protocol older than 4.1")
    max_packet, charset = reader.uint(4), reader.uint(1)
    reader.take(23)
    user = reader.nul_bytes().decode("utf-8", "replace")
    if Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA in capabilities:
        auth_response = reader.lenenc_bytes()
    elif Capability.SECURE_CONNECTION in capabilities:
        auth_response = reader.short_bytes()
    else:
        auth_response = reader.nul_bytes_or_rest()
    database = plugin = None
    if Capability.CONNECT_WITH_DB in capabilities and reader.remaining:
        database = reader.nul_bytes_or_rest().decode("utf-8", "replace")
    if Capability.PLUGIN_AUTH in capabilities and reader.remaining:
        plugin = reader.nul_bytes_or_rest().decode("utf-8", "replace")
    attributes: dict[str, str] = {}
    if Capability.CONNECT_ATTRS in capabilities and reader.remaining:
        pairs = Reader(reader.lenenc_bytes(), "connection attributes")
        while pairs.remaining:
            name = pairs.lenenc_bytes().decode("utf-8", "replace")
            attributes[name] = pairs.lenenc_bytes().decode("utf-8", "replace")
    zstd = Capability.ZSTD_COMPRESSION in capabilities and reader.remaining
    return HandshakeResponse(
        capabilities=capabilities,
        user=user,
        auth_response=auth_response,
        max_packet=max_packet,
        charset=charset,
        database=database,
        auth_plugin=plugin,
        attributes=attributes,
        zstd_level=reader.uint(1) if zstd else 3,
    )


def is_auth_switch(payload: bytes) -> bool:
    """Whether the server requests another authentication method than the one that the client began with."""
    return payload[:1] == bytes([EOF_MARKER])


def parse_auth_switch(payload: bytes) -> tuple[str, bytes]:
    """The method and the new nonce. The marker alone requests the password hash of MySQL before 4.1."""
    reader = Reader(payload, "authentication switch request")
    reader.take(1)
    if not reader.remaining:
        return "mysql_old_password", b""
    return _plugin_request(reader)


def build_auth_switch(plugin: str, nonce: bytes) -> bytes:
    """The packet that `parse_auth_switch` reads."""
    return uint_bytes(EOF_MARKER, 1) + nul_bytes(plugin.encode()) + nul_bytes(nonce)


def is_next_factor(payload: bytes, capabilities: Capability) -> bool:
    """Whether the server accepted the password and requests the next authentication factor."""
    agreed = Capability.MULTI_FACTOR_AUTHENTICATION in capabilities
    return agreed and payload[:1] == bytes([NEXT_FACTOR_MARKER])


def parse_next_factor(payload: bytes) -> tuple[str, bytes]:
    """The method of the next factor, and its nonce (MySQL's page "Protocol::AuthNextFactor")."""
    reader = Reader(payload, "request for the next factor")
    reader.take(1)
    return _plugin_request(reader)


def _plugin_request(reader: Reader) -> tuple[str, bytes]:
    plugin = _plugin(reader)
    data = reader.rest()
    # A nonce of 20 bytes is followed by a NUL; a longer one is not, and its own last byte may be a NUL.
    return plugin, data[:NONCE_SIZE] if len(data) == NONCE_SIZE + 1 else data


def _plugin(reader: Reader) -> str:
    plugin = reader.nul_bytes_or_rest()
    if len(plugin) > _LONGEST_PLUGIN:
        raise reader.fail(f"the name of the authentication method has {len(plugin)} bytes")
    return plugin.decode("utf-8", "replace")
