"""TLS for the clients of the archive server.

The certificate is the user's or, as in MySQL's and MariaDB's servers, a generated self-signed one. A client
accepts the latter if it does not verify certificates or, in MariaDB since 11.4, if the login proves it
(`engine.net.archive_server.server_login`).
"""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from engine.config.tls import load_certificate
from engine.dataclass import dataclass

_LIFETIME = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The TLS context of all connections, and the SHA-256 fingerprint of its certificate."""

    context: ssl.SSLContext
    fingerprint: bytes

    @classmethod
    def load(cls, certificate: Path, key: Path | None) -> Self:
        """Use a certificate from a file; raises `EngineError` if it or its key cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_certificate(context, certificate, key)
        shown = x509.load_pem_x509_certificate(certificate.read_bytes())
        return cls(context, shown.fingerprint(hashes.SHA256()))

    @classmethod
    def make(cls) -> Self:
        """Use a new self-signed certificate."""
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
        # Python's ssl module reads them only from a file; a temporary file is readable by its owner only.
        with tempfile.NamedTemporaryFile() as file:
            file.write(pem)
            file.flush()
            return cls.load(Path(file.name), None)
