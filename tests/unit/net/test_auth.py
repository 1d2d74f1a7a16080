"""Authentication methods: the proofs are right, and a password in clear needs a safe connection."""

from __future__ import annotations

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st
from pymysql import _auth as reference

from engine.errors import EngineError
from engine.net.protocol import auth, public_keys
from engine.net.protocol.auth import Credentials
from engine.net.protocol.signatures import sign_with_password
from engine.net.protocol.wire import ProtocolError

NONCE = bytes(range(1, 21))
SCRAMBLE = bytes(range(1, 33))
PASSWORD = b"corr\xc3\xa9ct horse"


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def public(key: rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def decrypt(key: rsa.RSAPrivateKey, encrypted: bytes) -> bytes:
    oaep = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
    plain = key.decrypt(encrypted, oaep)
    return bytes(a ^ NONCE[i % len(NONCE)] for i, a in enumerate(plain))


@given(st.binary(min_size=1, max_size=40), st.binary(min_size=20, max_size=20))
def test_scrambles_agree_with_another_client(password: bytes, nonce: bytes) -> None:
    assert auth.native_scramble(password, nonce) == reference.scramble_native_password(password, nonce)
    assert auth.sha2_scramble(password, nonce) == reference.scramble_caching_sha2(password, nonce)


@given(st.binary(min_size=1, max_size=40), st.binary(min_size=20, max_size=20), st.binary(max_size=30))
def test_native_proof_is_accepted_and_others_are_not(password: bytes, nonce: bytes, other: bytes) -> None:
    stored = hashlib.sha1(hashlib.sha1(password).digest()).digest()
    proof = auth.native_scramble(password, nonce)
    assert auth.native_accepts(stored, nonce, proof)
    assert not auth.native_accepts(stored, nonce, other) or other == proof


@pytest.mark.parametrize("plugin", ["mysql_native_password", "caching_sha2_password"])
def test_an_empty_password_is_an_empty_proof(plugin: str) -> None:
    assert next(auth.begin(plugin, Credentials(b"", NONCE, encrypted=False))) == b""


def test_caching_sha2_fast_path() -> None:
    exchange = auth.begin("caching_sha2_password", Credentials(PASSWORD, NONCE, encrypted=False))
    assert next(exchange) == auth.sha2_scramble(PASSWORD, NONCE)
    with pytest.raises(StopIteration):
        exchange.send(auth.SHA2_FAST_SUCCESS)


def test_caching_sha2_in_full_over_rsa(key: rsa.RSAPrivateKey) -> None:
    exchange = auth.begin("caching_sha2_password", Credentials(PASSWORD, NONCE, encrypted=False))
    next(exchange)
    assert exchange.send(auth.SHA2_FULL_AUTHENTICATION) == auth.SHA2_REQUEST_PUBLIC_KEY
    assert decrypt(key, exchange.send(public(key))) == PASSWORD + b"\0"


def test_sha256_over_rsa(key: rsa.RSAPrivateKey) -> None:
    exchange = auth.begin("sha256_password", Credentials(PASSWORD, NONCE, encrypted=False))
    assert next(exchange) == auth.SHA256_REQUEST_PUBLIC_KEY
    assert decrypt(key, exchange.send(public(key))) == PASSWORD + b"\0"


def test_a_key_from_elsewhere_is_not_asked_for(key: rsa.RSAPrivateKey) -> None:
    credentials = Credentials(PASSWORD, NONCE, encrypted=False, public_key=public(key))
    exchange = auth.begin("caching_sha2_password", credentials)
    next(exchange)
    assert decrypt(key, exchange.send(auth.SHA2_FULL_AUTHENTICATION)) == PASSWORD + b"\0"
    assert decrypt(key, next(auth.begin("sha256_password", credentials))) == PASSWORD + b"\0"


SECRET_OF_MARIADB = base64.b64decode("ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY=")
"""What MariaDB's documentation says is stored for the password `secret`."""


def test_client_ed25519_signs_for_the_key_that_mariadb_stores() -> None:
    proof = next(auth.begin("client_ed25519", Credentials(b"secret", SCRAMBLE, encrypted=False)))
    Ed25519PublicKey.from_public_bytes(SECRET_OF_MARIADB).verify(proof, SCRAMBLE)


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=60))
def test_client_ed25519_is_the_standard_for_passwords_of_32_bytes(password: bytes, message: bytes) -> None:
    assert sign_with_password(password, message) == Ed25519PrivateKey.from_private_bytes(password).sign(
        message
    )


@pytest.mark.parametrize("doublings", [0, 3])
def test_parsec_signs_both_scrambles(doublings: int) -> None:
    salt = bytes(range(18))
    exchange = auth.begin("parsec", Credentials(PASSWORD, SCRAMBLE, encrypted=False))
    assert next(exchange) == b""
    proof = exchange.send(b"P" + bytes([doublings]) + salt)
    seed = hashlib.pbkdf2_hmac("sha512", PASSWORD, salt, 1024 * 2**doublings, 32)
    public_key = Ed25519PrivateKey.from_private_bytes(seed).public_key()
    public_key.verify(proof[32:], SCRAMBLE + proof[:32])


@pytest.mark.parametrize("salt", [b"", b"Q\x00" + bytes(18), b"P\x04" + bytes(18), b"P\x00" + bytes(17)])
def test_parsec_knows_one_way_to_derive_keys(salt: bytes) -> None:
    exchange = auth.begin("parsec", Credentials(PASSWORD, SCRAMBLE, encrypted=False))
    next(exchange)
    with pytest.raises(ProtocolError):
        exchange.send(salt)


@pytest.mark.parametrize("plugin", ["client_ed25519", "parsec"])
def test_nothing_but_a_whole_scramble_is_signed(plugin: str) -> None:
    with pytest.raises(ProtocolError, match="20 bytes to sign"):
        next(auth.begin(plugin, Credentials(PASSWORD, NONCE, encrypted=False)))


def test_a_unix_socket_is_safe_but_not_for_sha256(key: rsa.RSAPrivateKey) -> None:
    local = Credentials(PASSWORD, NONCE, encrypted=False, local=True)
    exchange = auth.begin("caching_sha2_password", local)
    next(exchange)
    assert exchange.send(auth.SHA2_FULL_AUTHENTICATION) == PASSWORD + b"\0"
    assert next(auth.begin("mysql_clear_password", local)) == PASSWORD + b"\0"
    exchange = auth.begin("sha256_password", local)
    assert next(exchange) == auth.SHA256_REQUEST_PUBLIC_KEY
    assert decrypt(key, exchange.send(public(key))) == PASSWORD + b"\0"


@pytest.mark.parametrize("plugin", ["mysql_clear_password", "dialog"])
def test_a_password_in_clear_wants_a_safe_connection(plugin: str) -> None:
    assert next(auth.begin(plugin, Credentials(PASSWORD, b"", encrypted=True))) == PASSWORD + b"\0"
    with pytest.raises(EngineError, match="connect with --tls required"):
        next(auth.begin(plugin, Credentials(PASSWORD, b"", encrypted=False)))


def test_a_dialog_answers_questions_for_the_password_alone() -> None:
    exchange = auth.begin("dialog", Credentials(PASSWORD, b"\x04Password:", encrypted=True))
    assert next(exchange) == PASSWORD + b"\0"
    assert exchange.send(b"\x05Again:") == PASSWORD + b"\0"
    with pytest.raises(EngineError, match=r"'Which colour\?'.* needs an interactive client"):
        exchange.send(b"\x02Which colour?")


def test_the_first_method_is_the_servers_unless_it_takes_passwords_in_clear() -> None:
    assert auth.first_method("caching_sha2_password") == "caching_sha2_password"
    for plugin in ("mysql_clear_password", "dialog", "mysql_old_password", "nobody_knows_it"):
        assert auth.first_method(plugin) == "mysql_native_password"


def test_the_password_itself_travels_only_where_it_is_safe() -> None:
    exchange = auth.begin("caching_sha2_password", Credentials(PASSWORD, NONCE, encrypted=True))
    next(exchange)
    assert exchange.send(auth.SHA2_FULL_AUTHENTICATION) == PASSWORD + b"\0"
    assert (
        next(auth.begin("sha256_password", Credentials(PASSWORD, NONCE, encrypted=True))) == PASSWORD + b"\0"
    )


@pytest.mark.parametrize("plugin", auth.METHODS)
@given(
    nonce=st.sampled_from([b"", NONCE, SCRAMBLE, b"\x04Password:", b"\x02Your name?"]),
    answers=st.lists(
        st.sampled_from([b"", b"\x03", b"\x04", b"\x02", b"no key", b"P\x00" + bytes(18)]), max_size=4
    ),
)
def test_no_answer_of_a_server_draws_the_password_out(
    plugin: str, nonce: bytes, answers: list[bytes]
) -> None:
    exchange = auth.begin(plugin, Credentials(PASSWORD, nonce, encrypted=False))
    try:
        assert PASSWORD not in next(exchange)
        for answer in answers:
            assert PASSWORD not in exchange.send(answer)
    except (StopIteration, EngineError) as end:
        assert "horse" not in str(end)


def test_keys_that_are_none() -> None:
    ec = b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"
    for text in (b"", b"\xff" * 50, ec):
        with pytest.raises(ProtocolError, match="not an RSA key"):
            public_keys.encrypt_password(PASSWORD, NONCE, text)


def test_a_password_too_long_for_the_key(key: rsa.RSAPrivateKey) -> None:
    with pytest.raises(EngineError, match="use TLS"):
        public_keys.encrypt_password(b"x" * 300, NONCE, public(key))


def test_refused_and_unknown_methods_are_named() -> None:
    credentials = Credentials(PASSWORD, NONCE, encrypted=True)
    with pytest.raises(EngineError, match=r"before 4\.1"):
        next(auth.begin("mysql_old_password", credentials))
    with pytest.raises(EngineError, match="authentication_kerberos"):
        auth.begin("authentication_kerberos", credentials)


def test_credentials_are_never_printed() -> None:
    assert "horse" not in repr(Credentials(PASSWORD, NONCE, encrypted=False))
