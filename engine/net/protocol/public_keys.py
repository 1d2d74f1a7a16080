"""Encrypts a password with the server's RSA key, for a connection that is not encrypted itself.

`sha256_password` needs it for every login, `caching_sha2_password` if the server does not remember the user.
Source: MySQL's `sql-common/client_authentication.cc`.
"""

from __future__ import annotations

import operator

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from engine.errors import EngineError
from engine.net.protocol.wire import ProtocolError

# MySQL requires SHA-1 here; the security of OAEP does not depend on a collision-resistant hash.
_OAEP = padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)


def encrypt_password(password: bytes, nonce: bytes, public_key: bytes) -> bytes:
    """The NUL-terminated password, XORed with the repeated nonce and encrypted with the server's RSA key."""
    key = _load_public_key(public_key)
    plain = password + b"\0"
    pad = (nonce * (len(plain) // len(nonce) + 1))[: len(plain)] if nonce else bytes(len(plain))
    try:
        return key.encrypt(bytes(map(operator.xor, plain, pad)), _OAEP)
    except ValueError:
        raise EngineError("the password is too long for the server's RSA key: use TLS") from None


def check_public_key(public_key: bytes) -> None:
    """Raise `ProtocolError` if `public_key` is not an RSA key in PEM form."""
    _load_public_key(public_key)


def _load_public_key(public_key: bytes) -> rsa.RSAPublicKey:
    try:
        key = serialization.load_pem_public_key(public_key)
    except (ValueError, UnsupportedAlgorithm):
        raise ProtocolError("the server's public key is not an RSA key in PEM form") from None
    if not isinstance(key, rsa.RSAPublicKey):
        raise ProtocolError("the server's public key is not an RSA key in PEM form")
    return key
