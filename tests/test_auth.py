"""Authentication methods: the proofs are right, and a password in clear travels only where it is safe."""

from __future__ import annotations

import hashlib

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from hypothesis import given
from hypothesis import strategies as st
from pymysql import _auth as reference

from engine.errors import EngineError
from engine.net import auth
from engine.net.auth import Credentials
from engine.net.wire import ProtocolError

NONCE = bytes(range(1, 21))
PASSWORD = b"corr\xc3\xa9ct horse"


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(65537, 2048)


def public(key):
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def decrypt(key, encrypted):
    oaep = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
    plain = key.decrypt(encrypted, oaep)
    return bytes(a ^ NONCE[i % len(NONCE)] for i, a in enumerate(plain))


@given(st.binary(min_size=1, max_size=40), st.binary(min_size=20, max_size=20))
def test_scrambles_agree_with_another_client(password, nonce):
    assert auth.native_scramble(password, nonce) == reference.scramble_native_password(password, nonce)
    assert auth.sha2_scramble(password, nonce) == reference.scramble_caching_sha2(password, nonce)


@given(st.binary(min_size=1, max_size=40), st.binary(min_size=20, max_size=20), st.binary(max_size=30))
def test_native_proof_is_accepted_and_others_are_not(password, nonce, other):
    stored = hashlib.sha1(hashlib.sha1(password).digest()).digest()
    proof = auth.native_scramble(password, nonce)
    assert auth.native_accepts(stored, nonce, proof)
    assert not auth.native_accepts(stored, nonce, other) or other == proof


@pytest.mark.parametrize("plugin", ["mysql_native_password", "caching_sha2_password"])
def test_an_empty_password_is_an_empty_proof(plugin):
    assert next(auth.begin(plugin, Credentials(b"", NONCE, secure=False))) == b""


def test_caching_sha2_fast_path():
    exchange = auth.begin("caching_sha2_password", Credentials(PASSWORD, NONCE, secure=False))
    assert next(exchange) == auth.sha2_scramble(PASSWORD, NONCE)
    with pytest.raises(StopIteration):
        exchange.send(auth.SHA2_FAST_SUCCESS)


def test_caching_sha2_in_full_over_rsa(key):
    exchange = auth.begin("caching_sha2_password", Credentials(PASSWORD, NONCE, secure=False))
    next(exchange)
    assert exchange.send(auth.SHA2_FULL_AUTHENTICATION) == auth.SHA2_REQUEST_PUBLIC_KEY
    assert decrypt(key, exchange.send(public(key))) == PASSWORD + b"\0"


def test_sha256_over_rsa(key):
    exchange = auth.begin("sha256_password", Credentials(PASSWORD, NONCE, secure=False))
    assert next(exchange) == auth.SHA256_REQUEST_PUBLIC_KEY
    assert decrypt(key, exchange.send(public(key))) == PASSWORD + b"\0"


def test_the_password_itself_travels_only_where_it_is_safe():
    exchange = auth.begin("caching_sha2_password", Credentials(PASSWORD, NONCE, secure=True))
    next(exchange)
    assert exchange.send(auth.SHA2_FULL_AUTHENTICATION) == PASSWORD + b"\0"
    assert next(auth.begin("sha256_password", Credentials(PASSWORD, NONCE, secure=True))) == PASSWORD + b"\0"


@pytest.mark.parametrize("plugin", [name for name in auth.METHODS if name != "mysql_old_password"])
@given(answers=st.lists(st.sampled_from([b"", b"\x03", b"\x04", b"\x02", b"no key"]), max_size=4))
def test_no_answer_of_a_server_draws_the_password_out(plugin, answers):
    exchange = auth.begin(plugin, Credentials(PASSWORD, NONCE, secure=False))
    try:
        assert PASSWORD not in next(exchange)
        for answer in answers:
            assert PASSWORD not in exchange.send(answer)
    except (StopIteration, EngineError) as end:
        assert "horse" not in str(end)


def test_keys_that_are_none():
    ec = b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"
    for text in (b"", b"\xff" * 50, ec):
        with pytest.raises(ProtocolError, match="no RSA key"):
            auth.encrypt_password(PASSWORD, NONCE, text)


def test_a_password_too_long_for_the_key(key):
    with pytest.raises(EngineError, match="use TLS"):
        auth.encrypt_password(b"x" * 300, NONCE, public(key))


def test_refused_and_unknown_methods_are_named():
    credentials = Credentials(PASSWORD, NONCE, secure=True)
    with pytest.raises(EngineError, match=r"before 4\.1"):
        next(auth.begin("mysql_old_password", credentials))
    with pytest.raises(EngineError, match="authentication_kerberos"):
        auth.begin("authentication_kerberos", credentials)


def test_credentials_are_never_printed():
    assert "horse" not in repr(Credentials(PASSWORD, NONCE, secure=False))
