"""Authentication methods: how a client proves a password, one generator per plugin.

A method yields what to send and receives what the server answers; it knows the credentials but no socket. A
new method is one function and one entry in `METHODS`. No method puts a password in clear on a connection that
is neither encrypted nor local to the machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from engine.errors import EngineError
from engine.net.wire import ProtocolError

Exchange = Generator[bytes, bytes, None]
"""Yields each payload to send, the first unasked; is sent the data of each answer that is no OK or ERR."""

SHA256_REQUEST_PUBLIC_KEY = b"\x01"
SHA2_REQUEST_PUBLIC_KEY = b"\x02"
SHA2_FAST_SUCCESS = b"\x03"
SHA2_FULL_AUTHENTICATION = b"\x04"
# MySQL fixes SHA-1 here; OAEP does not need a hash that withstands collisions.
_OAEP = padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a method may use to prove who we are; never printed."""

    password: bytes = field(repr=False)
    nonce: bytes = field(repr=False)
    secure: bool
    """The connection is encrypted, or a socket on this machine: a password in clear is safe on it."""


def begin(plugin: str, credentials: Credentials) -> Exchange:
    """The exchange of that plugin; raises `EngineError` for a plugin that we do not know or refuse."""
    method = METHODS.get(plugin)
    if method is None:
        raise EngineError(
            f"the server wants the authentication method {plugin}, which is not supported: give the user one "
            f"of {', '.join(name for name in METHODS if name != 'mysql_old_password')}"
        )
    return method(credentials)


def native_scramble(password: bytes, nonce: bytes) -> bytes:
    """SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password)))."""
    once = hashlib.sha1(password).digest()
    return _xor(once, hashlib.sha1(nonce + hashlib.sha1(once).digest()).digest())


def native_accepts(stored: bytes, nonce: bytes, scramble: bytes) -> bool:
    """Whether `scramble` proves the password whose SHA1(SHA1()) is `stored`: the server's side of it."""
    if len(scramble) != len(stored):
        return False
    once = _xor(scramble, hashlib.sha1(nonce + stored).digest())
    return hashlib.sha1(once).digest() == stored


def sha2_scramble(password: bytes, nonce: bytes) -> bytes:
    """SHA256(password) XOR SHA256(SHA256(SHA256(password)) + nonce)."""
    once = hashlib.sha256(password).digest()
    return _xor(once, hashlib.sha256(hashlib.sha256(once).digest() + nonce).digest())


def sha2_accepts(stored: bytes, nonce: bytes, scramble: bytes) -> bool:
    """Whether `scramble` proves the password whose SHA256(SHA256()) is `stored`: the server's side of it."""
    if len(scramble) != len(stored):
        return False
    once = _xor(scramble, hashlib.sha256(stored + nonce).digest())
    return hashlib.sha256(once).digest() == stored


def encrypt_password(password: bytes, nonce: bytes, public_key: bytes) -> bytes:
    """The password, NUL-ended, XORed with the repeated nonce, then encrypted with the server's RSA key."""
    try:
        key = serialization.load_pem_public_key(public_key)
    except (ValueError, UnsupportedAlgorithm):
        raise ProtocolError("the server's public key is no RSA key in PEM form") from None
    if not isinstance(key, rsa.RSAPublicKey):
        raise ProtocolError("the server's public key is no RSA key in PEM form")
    plain = password + b"\0"
    pad = (nonce * (len(plain) // len(nonce) + 1))[: len(plain)] if nonce else bytes(len(plain))
    try:
        return key.encrypt(_xor(plain, pad), _OAEP)
    except ValueError:
        raise EngineError("the password is too long for the server's RSA key: use TLS") from None


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def _native_password(credentials: Credentials) -> Exchange:
    password = credentials.password
    yield native_scramble(password, credentials.nonce) if password else b""


def _caching_sha2_password(credentials: Credentials) -> Exchange:
    password, nonce = credentials.password, credentials.nonce
    answer = yield sha2_scramble(password, nonce) if password else b""
    if answer == SHA2_FAST_SUCCESS:
        return
    if answer != SHA2_FULL_AUTHENTICATION:
        raise ProtocolError(f"caching_sha2_password gives no meaning to the answer {answer[:8]!r}")
    if credentials.secure:
        yield password + b"\0"
        return
    public_key = yield SHA2_REQUEST_PUBLIC_KEY
    yield encrypt_password(password, nonce, public_key)


def _sha256_password(credentials: Credentials) -> Exchange:
    password = credentials.password
    if not password:
        yield b"\0"
        return
    if credentials.secure:
        yield password + b"\0"
        return
    public_key = yield SHA256_REQUEST_PUBLIC_KEY
    yield encrypt_password(password, credentials.nonce, public_key)


def _old_password(credentials: Credentials) -> Exchange:
    raise EngineError(
        "the server wants the password hash of MySQL before 4.1, which anyone can break and which is never "
        "sent: give the user a password in a current form (ALTER USER … IDENTIFIED BY …)"
    )
    yield b""


METHODS: dict[str, Callable[[Credentials], Exchange]] = {
    "mysql_native_password": _native_password,
    "caching_sha2_password": _caching_sha2_password,
    "sha256_password": _sha256_password,
    "mysql_old_password": _old_password,
}
"""Plugin name, as the server says it, → method."""
