"""The client side of the authentication plugins, one generator per plugin.

A generator yields the payloads to send and is sent the server's answers; it gets the credentials and does no
I/O. A new plugin is one function and one entry in `METHODS`. A password is never sent in clear over a
connection that is neither encrypted nor a unix socket: `_in_clear` checks this, and every method that sends a
password in clear calls it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Generator
from dataclasses import field

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.net.protocol.wire import ProtocolError

Exchange = Generator[bytes, bytes, None]
"""Yields each payload to send, the first before any answer; is sent the data of answers except OK and ERR."""

SHA256_REQUEST_PUBLIC_KEY = b"\x01"
SHA2_REQUEST_PUBLIC_KEY = b"\x02"
SHA2_FAST_SUCCESS = b"\x03"
SHA2_FULL_AUTHENTICATION = b"\x04"
SCRAMBLE_SIZE = 32
"""The number of random bytes that the server sends for the client to sign; `parsec` clients add as many."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a method authenticates with; the secrets are left out of its repr."""

    password: bytes = field(repr=False)
    nonce: bytes = field(repr=False)
    """The random bytes (scramble) that the server sent with the name of the plugin."""
    encrypted: bool
    local: bool = False
    """The connection is a unix socket."""
    public_key: bytes | None = field(default=None, repr=False)
    """The server's RSA public key in PEM form, if the user configured it; None asks the server for it."""

    @property
    def secure(self) -> bool:
        """Whether a password can be sent in clear: the connection is encrypted or local."""
        return self.encrypted or self.local


def begin(plugin: str, credentials: Credentials) -> Exchange:
    """The exchange of that plugin; raises `EngineError` if the plugin is unknown or refused."""
    method = METHODS.get(plugin)
    if method is None:
        raise EngineError(
            f"the server requests the authentication method {plugin}, which is not supported: use one of "
            f"{', '.join(name for name in METHODS if name != 'mysql_old_password')} for the user"
        )
    return method(credentials)


def first_method(wanted: str) -> str:
    """The method to begin with: the server learns the user name, and so the user's method, only after it.

    That is the server's default, unless it sends the password in clear: that one the server must request.
    """
    return wanted if wanted in _FIRST_METHODS else _FIRST_METHODS[0]


def native_scramble(password: bytes, nonce: bytes) -> bytes:
    """SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password)))."""
    once = hashlib.sha1(password).digest()
    return _xor(once, hashlib.sha1(nonce + hashlib.sha1(once).digest()).digest())


def native_accepts(stored: bytes, nonce: bytes, scramble: bytes) -> bool:
    """Whether `scramble` proves the password whose SHA1(SHA1()) is `stored`: the server's check."""
    if len(scramble) != len(stored):
        return False
    once = _xor(scramble, hashlib.sha1(nonce + stored).digest())
    return hashlib.sha1(once).digest() == stored


def sha2_scramble(password: bytes, nonce: bytes) -> bytes:
    """SHA256(password) XOR SHA256(SHA256(SHA256(password)) + nonce)."""
    once = hashlib.sha256(password).digest()
    return _xor(once, hashlib.sha256(hashlib.sha256(once).digest() + nonce).digest())


def sha2_accepts(stored: bytes, nonce: bytes, scramble: bytes) -> bool:
    """Whether `scramble` proves the password whose SHA256(SHA256()) is `stored`: the server's check."""
    if len(scramble) != len(stored):
        return False
    once = _xor(scramble, hashlib.sha256(stored + nonce).digest())
    return hashlib.sha256(once).digest() == stored


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def _in_clear(credentials: Credentials, method: str) -> bytes:
    if not credentials.secure:
        raise EngineError(
            f"the server requests the password in clear ({method}), which is sent only over an encrypted "
            "connection or a unix socket: connect with --tls required"
        )
    return credentials.password + b"\0"


def _native_password(credentials: Credentials) -> Exchange:
    password = credentials.password
    yield native_scramble(password, credentials.nonce) if password else b""


def _caching_sha2_password(credentials: Credentials) -> Exchange:
    password, nonce = credentials.password, credentials.nonce
    answer = yield sha2_scramble(password, nonce) if password else b""
    if answer == SHA2_FAST_SUCCESS:
        return
    if answer != SHA2_FULL_AUTHENTICATION:
        raise ProtocolError(f"caching_sha2_password does not define the server's answer {answer[:8]!r}")
    yield from _in_full(credentials, "caching_sha2_password", credentials.secure, SHA2_REQUEST_PUBLIC_KEY)


def _sha256_password(credentials: Credentials) -> Exchange:
    if not credentials.password:
        yield b"\0"
        return
    # Unlike caching_sha2_password, this method does not send the password in clear over a unix socket.
    yield from _in_full(credentials, "sha256_password", credentials.encrypted, SHA256_REQUEST_PUBLIC_KEY)


def _in_full(credentials: Credentials, method: str, safe: bool, request_public_key: bytes) -> Exchange:
    """Send the password itself: in clear if `safe`, else encrypted with the server's RSA key."""
    if safe:
        yield _in_clear(credentials, method)
        return
    public_key = credentials.public_key
    if public_key is None:
        public_key = yield request_public_key
    # Imported late, like `signatures`: few logins need public keys, and the library takes long to import.
    from engine.net.protocol.public_keys import encrypt_password

    yield encrypt_password(credentials.password, credentials.nonce, public_key)


def _client_ed25519(credentials: Credentials) -> Exchange:
    from engine.net.protocol.signatures import sign_with_password

    yield sign_with_password(credentials.password, _scramble(credentials, "client_ed25519"))


def _parsec(credentials: Credentials) -> Exchange:
    from engine.net.protocol.signatures import ParsecSalt

    theirs, ours = _scramble(credentials, "parsec"), secrets.token_bytes(SCRAMBLE_SIZE)
    salt = ParsecSalt.parse((yield b""))
    yield ours + salt.key(credentials.password).sign(theirs + ours)


def _scramble(credentials: Credentials, method: str) -> bytes:
    if len(credentials.nonce) != SCRAMBLE_SIZE:
        raise ProtocolError(
            f"the server sent {len(credentials.nonce)} bytes to sign for {method}, not {SCRAMBLE_SIZE}"
        )
    return credentials.nonce


def _clear_password(credentials: Credentials) -> Exchange:
    yield _in_clear(credentials, "mysql_clear_password")


def _dialog(credentials: Credentials) -> Exchange:
    """MariaDB's PAM plugin sends prompts: one byte for the kind of question, then the text to display."""
    question = credentials.nonce or _PASSWORD_QUESTIONS[0]
    while question[:1] in _PASSWORD_QUESTIONS:
        question = yield _in_clear(credentials, "dialog")
    text = question[1:80].decode("utf-8", "replace")
    raise EngineError(
        f"the server asks {text!r} at login, which needs an interactive client: use another authentication "
        "method for the user"
    )


def _old_password(credentials: Credentials) -> Exchange:
    raise EngineError(
        "the server requests the password hash of MySQL before 4.1, which is insecure and is never sent: "
        "give the user a password in a current format (ALTER USER … IDENTIFIED BY …)"
    )
    yield b""


_PASSWORD_QUESTIONS = (b"\x04", b"\x05")
"""A password prompt, and the last password prompt; the other kinds (2, 3) ask for text that may be echoed."""

_FIRST_METHODS = ("mysql_native_password", "caching_sha2_password", "sha256_password")

METHODS: dict[str, Callable[[Credentials], Exchange]] = {
    "mysql_native_password": _native_password,
    "caching_sha2_password": _caching_sha2_password,
    "sha256_password": _sha256_password,
    "client_ed25519": _client_ed25519,
    "parsec": _parsec,
    "mysql_clear_password": _clear_password,
    "dialog": _dialog,
    "mysql_old_password": _old_password,
}
"""Plugin name, as the server sends it, → method."""
