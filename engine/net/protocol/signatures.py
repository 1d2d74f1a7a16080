"""Ed25519 signatures with a password as the key: MariaDB's plugins `client_ed25519` and `parsec`.

`client_ed25519` uses the SHA-512 of a password of any length as the expanded key, where standard Ed25519
starts from a seed of 32 bytes; so the signature is computed here with libsodium's curve operations. `parsec`
is standard Ed25519 with a seed that PBKDF2 derives from the password and a salt. Sources: MariaDB's
`plugin/auth_ed25519/ref10/sign.c` and `plugin/auth_parsec/server_parsec.cc`.
"""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from nacl.bindings import (
    crypto_core_ed25519_scalar_add,
    crypto_core_ed25519_scalar_mul,
    crypto_core_ed25519_scalar_reduce,
    crypto_scalarmult_ed25519_base_noclamp,
)

from engine.dataclass import dataclass
from engine.net.protocol.wire import ProtocolError, Reader

_FIRST_ITERATIONS = 1024
_MAX_DOUBLINGS = 3
_SALT_SIZE = 18


def sign_with_password(password: bytes, message: bytes) -> bytes:
    """The 64 bytes of the `client_ed25519` signature; the same as standard Ed25519 for 32-byte passwords."""
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
    """The key derivation parameters that the server stores with a `parsec` user's public key."""

    salt: bytes
    iterations: int

    @classmethod
    def parse(cls, payload: bytes) -> ParsecSalt:
        """Parse the server's packet; raises `ProtocolError` for an unknown key derivation."""
        reader = Reader(payload, "parsec salt")
        method, doublings, salt = reader.take(1), reader.uint(1), reader.rest()
        if method != b"P" or doublings > _MAX_DOUBLINGS or len(salt) != _SALT_SIZE:
            raise ProtocolError(f"the server requests an unknown key derivation for parsec ({payload[:2]!r})")
        return cls(salt, _FIRST_ITERATIONS << doublings)

    def key(self, password: bytes) -> Ed25519PrivateKey:
        """The private key that is derived from the password."""
        seed = hashlib.pbkdf2_hmac("sha512", password, self.salt, self.iterations, 32)
        return Ed25519PrivateKey.from_private_bytes(seed)


def _scalar(data: bytes) -> bytes:
    return crypto_core_ed25519_scalar_reduce(hashlib.sha512(data).digest())
