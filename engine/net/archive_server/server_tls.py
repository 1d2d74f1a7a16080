"""TLS for the clients of the source that we serve.

With the user's certificate; else, as servers do, with one made for the occasion, that nobody has signed. A
client takes that one when it verifies nothing, or, MariaDB's since 11.4, by what the login proves of it
(`engine.net.archive_server.server_login`).
"""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from engine.config.tls import load_certificate

_LIFETIME = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class ServerTls:
    """A context for all connections, and the SHA-256 fingerprint of the certificate that it shows."""

    context: ssl.SSLContext
    fingerprint: bytes

    @classmethod
    def load(cls, certificate: Path, key: Path | None) -> Self:
        """With a certificate from a file; raises `EngineError` where it or its key cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_certificate(context, certificate, key)
        shown = x509.load_pem_x509_certificate(certificate.read_bytes())
        return cls(context, shown.fingerprint(hashes.SHA256()))

    @classmethod
    def make(cls) -> Self:
        """With a new certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "binlog-engine serve")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + _LIFETIME)
            .sign(key, hashes.SHA256())
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        # OpenSSL takes them from a file only; a temporary one is for our eyes alone.
        with tempfile.NamedTemporaryFile() as file:
            file.write(pem)
            file.flush()
            return cls.load(Path(file.name), None)
