"""Certificates for servers and clients of the tests, by authorities of our own.

Everything is RSA with SHA-256 in the oldest key format, which even the TLS library of MySQL 5.6 reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization

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
        self._authority = trustme.CA(organization_name=name, key_type=trustme.KeyType.RSA)
        self.ca = folder / f"{name.replace(' ', '-')}-ca.pem"
        self._authority.cert_pem.write_to_path(self.ca)

    def issue(
        self,
        name: str,
        hosts: Sequence[str] = (),
        *,
        lifetime: timedelta = LIFETIME,
        passphrase: bytes | None = None,
    ) -> Certificate:
        """A new certificate for host names and addresses; one with a negative lifetime has expired."""
        end = datetime.now(UTC) + lifetime
        issued = self._authority.issue_cert(
            *hosts, common_name=name, not_after=end, key_type=trustme.KeyType.RSA
        )
        files = Certificate(self._folder / f"{name}-cert.pem", self._folder / f"{name}-key.pem")
        issued.cert_chain_pems[0].write_to_path(files.certificate)
        key = issued.private_key_pem.bytes()
        if passphrase is not None:
            key = serialization.load_pem_private_key(key, None).private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.BestAvailableEncryption(passphrase),
            )
        files.key.write_bytes(key)
        files.key.chmod(0o600)
        return files
