"""Passwords as Ed25519 keys: MariaDB's two ways to sign what a server sends.

`client_ed25519` takes the SHA-512 of a password of any length for an expanded key, where standard Ed25519
starts from a seed of 32 bytes; so it is put together here from libsodium's operations on the curve. `parsec`
is standard Ed25519, whose seed PBKDF2 makes of the password and a salt. Sources: MariaDB's
`plugin/auth_ed25519/ref10/sign.c` and `plugin/auth_parsec/server_parsec.cc`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nacl.bindings import (
    crypto_core_ed25519_scalar_add,
    crypto_core_ed25519_scalar_mul,
    crypto_core_ed25519_scalar_reduce,
    crypto_scalarmult_ed25519_base_noclamp,
)

from engine.net.protocol.wire import ProtocolError, Reader

SCRAMBLE_SIZE = 32
"""Bytes of randomness that the server sends to be signed, and that `parsec` adds of its own."""
_FIRST_ITERATIONS = 1024
_MAX_DOUBLINGS = 3
_SALT_SIZE = 18


def sign_with_password(password: bytes, message: bytes) -> bytes:
    """The 64 bytes of `client_ed25519`: standard Ed25519 if the password has 32 bytes, else its own."""
    expanded = bytearray(hashlib.sha512(password).digest())
    expanded[0] &= 248
    expanded[31] = expanded[31] & 63 | 64
    secret, prefix = bytes(expanded[:32]), bytes(expanded[32:])
    nonce = _scalar(prefix + message)
    public_key = crypto_scalarmult_ed25519_base_noclamp(secret)
    commitment = crypto_scalarmult_ed25519_base_noclamp(nonce)
    challenge = _scalar(commitment + public_key + message)
    return commitment + crypto_core_ed25519_scalar_add(
        nonce, crypto_core_ed25519_scalar_mul(challenge, secret)
    )


@dataclass(frozen=True, slots=True)
class ParsecSalt:
    """What the server stores beside a `parsec` user's public key."""

    salt: bytes
    iterations: int

    @classmethod
    def parse(cls, payload: bytes) -> ParsecSalt:
        """Raises `ProtocolError` for another way to derive keys than the one there is."""
        reader = Reader(payload, "parsec salt")
        method, doublings, salt = reader.take(1), reader.uint(1), reader.rest()
        if method != b"P" or doublings > _MAX_DOUBLINGS or len(salt) != _SALT_SIZE:
            raise ProtocolError(f"parsec derives keys in a way that nobody knows here ({payload[:2]!r})")
        return cls(salt, _FIRST_ITERATIONS << doublings)

    def key(self, password: bytes) -> Ed25519PrivateKey:
        """The key that the password stands for."""
        seed = hashlib.pbkdf2_hmac("sha512", password, self.salt, self.iterations, 32)
        return Ed25519PrivateKey.from_private_bytes(seed)


def _scalar(data: bytes) -> bytes:
    return crypto_core_ed25519_scalar_reduce(hashlib.sha512(data).digest())
