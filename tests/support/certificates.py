"""Certificates for servers and clients of the tests, by authorities of our own.

Everything is RSA with SHA-256 in the oldest key format, which even the TLS library of MySQL 5.6 reads.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

LIFETIME = timedelta(days=2)


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, as files in PEM form."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates; its own is in the file `ca`."""

    def __init__(self, folder: Path, name: str = "engine tests") -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = _new_key()
        self.ca = folder / f"{name.replace(' ', '-')}-ca.pem"
        own = _builder(self._name, self._name, self._key, LIFETIME)
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.ca.write_bytes(_pem(own.sign(self._key, hashes.SHA256())))

    def issue(
        self,
        name: str,
        hosts: Sequence[str] = (),
        *,
        lifetime: timedelta = LIFETIME,
        passphrase: bytes | None = None,
    ) -> Certificate:
        """A new certificate for host names and addresses; one with a negative lifetime has expired."""
        key = _new_key()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(subject, self._name, key, lifetime)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False
            )
        files = Certificate(self._folder / f"{name}-cert.pem", self._folder / f"{name}-key.pem")
        files.certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        hidden = (
            serialization.NoEncryption()
            if passphrase is None
            else serialization.BestAvailableEncryption(passphrase)
        )
        files.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, hidden
            )
        )
        files.key.chmod(0o600)
        return files


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: rsa.RSAPrivateKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, now + lifetime) - timedelta(minutes=1))
        .not_valid_after(now + lifetime)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
