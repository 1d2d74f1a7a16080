"""TLS to a server: the options, the `ssl` context that they result in, and the meaning of failures.

The options are a frozen dataclass that is sent to other processes. The context, which cannot be sent, is
created for each connection, so that certificates can be replaced while the engine runs. From `required` on
nothing is sent unencrypted, even if the server (or an attacker in between) claims not to support TLS.
"""

from __future__ import annotations

import ssl
import warnings
from enum import StrEnum
from pathlib import Path

from engine.dataclass import dataclass
from engine.errors import ConnectionFailed, EngineError


class TlsMode(StrEnum):
    """The required security; each mode requires more than the one before."""

    DISABLED = "disabled"
    PREFERRED = "preferred"
    """Encrypted if the server offers it; an attacker in between can remove the offer."""
    REQUIRED = "required"
    """Encrypted, with any certificate."""
    VERIFY_CA = "verify-ca"
    """Encrypted, with a certificate that a trusted authority signed."""
    VERIFY_IDENTITY = "verify-identity"
    """Also, the certificate names the host that we connect to."""

    @property
    def verifies(self) -> bool:
        """Whether the server's certificate is verified."""
        return self in (TlsMode.VERIFY_CA, TlsMode.VERIFY_IDENTITY)


VERSIONS = {
    "1.0": ssl.TLSVersion.TLSv1,
    "1.1": ssl.TLSVersion.TLSv1_1,
    "1.2": ssl.TLSVersion.TLSv1_2,
    "1.3": ssl.TLSVersion.TLSv1_3,
}
"""The versions that can be set as the oldest."""


_LEGACY_SERVER_CONNECT = 0x4
"""OpenSSL's SSL_OP_LEGACY_SERVER_CONNECT, which Python has a name for since 3.12."""


@dataclass(frozen=True, slots=True)
class Tls:
    """The encryption of a connection. Raises `EngineError` for options that contradict each other."""

    mode: TlsMode = TlsMode.PREFERRED
    ca: Path | None = None
    """File of the authorities to trust; None for those that this machine trusts."""
    certificate: Path | None = None
    """File of the client's certificate, for servers that ask for one; it may also contain the key."""
    key: Path | None = None
    minimum_version: str = "1.2"

    def __post_init__(self) -> None:
        if self.ca is not None and not self.mode.verifies:
            raise EngineError(
                f"--tls {self.mode} does not verify the server's certificate, so --tls-ca has no effect: ask "
                "for verify-ca or verify-identity"
            )
        if self.key is not None and self.certificate is None:
            raise EngineError(
                "--tls-key has no effect without --tls-cert, the certificate that it belongs to"
            )

    def wanted(self, *, offered: bool, local: bool, where: str) -> bool:
        """Whether to encrypt the connection to a server that offers it or not.

        `local`: over a unix socket, which cannot be eavesdropped on. Raises `EngineError` if the required
        security is not available.
        """
        if self.mode is TlsMode.DISABLED or (self.mode is TlsMode.PREFERRED and local):
            return False
        if local and self.mode is TlsMode.VERIFY_IDENTITY:
            raise EngineError(f"{where} is a unix socket, which no certificate can name: ask for verify-ca")
        if offered or self.mode is TlsMode.PREFERRED:
            return offered
        raise EngineError(
            f"{where} offers no TLS, which --tls {self.mode} asks for: configure it on the server (and if "
            "it is configured, find out which program answers in its place)"
        )

    def context(self) -> ssl.SSLContext:
        """The `ssl` context for one connection. Raises `EngineError` for files that cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.mode is TlsMode.VERIFY_IDENTITY
        context.verify_mode = ssl.CERT_REQUIRED if self.mode.verifies else ssl.CERT_NONE
        # Every certificate in the file is trusted: a root, an intermediate, or the server's own.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        self._set_version(context)
        if self.mode.verifies:
            self._trust(context)
        if self.certificate is not None:
            load_certificate(context, self.certificate, self.key)
        return context

    def _set_version(self, context: ssl.SSLContext) -> None:
        with warnings.catch_warnings():
            # The user has asked for a version before 1.2, so Python's warning about it is not needed.
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = VERSIONS[self.minimum_version]
        if VERSIONS[self.minimum_version] < ssl.TLSVersion.TLSv1_2:
            # Such servers sign with hashes that OpenSSL 3 accepts only at its lowest security level, offer
            # Diffie-Hellman groups that it accepts at none, and are older than secure renegotiation.
            context.set_ciphers("DEFAULT:!DHE:@SECLEVEL=0")
            context.options |= _LEGACY_SERVER_CONNECT

    def _trust(self, context: ssl.SSLContext) -> None:
        if self.ca is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
            return
        _require_readable(self.ca, "--tls-ca")
        try:
            context.load_verify_locations(self.ca)
        except ssl.SSLError:
            raise EngineError(f"--tls-ca {self.ca} contains no certificates in PEM form") from None


NO_TLS = Tls(TlsMode.DISABLED)


def explain(error: OSError, where: str, tls: Tls) -> EngineError:
    """The error for a TLS failure on the connection to `where`; most are configuration errors.

    Damage in transit is a `ConnectionFailed`, since the next try may succeed.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        sentence = _UNTRUSTED.get(error.verify_code, _UNTRUSTED_OTHERWISE)
        reason = error.verify_message
    else:
        reason = (getattr(error, "reason", None) or str(error)).replace("_", " ").lower()
        sentence = next((text for part, text in _FAILURES if part in reason), _FAILED)
    authorities = "this machine's authorities" if tls.ca is None else str(tls.ca)
    kind = ConnectionFailed if any(part in reason for part in _DAMAGED) else EngineError
    return kind(
        sentence.format(where=where, reason=reason, authorities=authorities, version=tls.minimum_version)
    )


def _require_readable(path: Path, flag: str) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise EngineError(f"{flag} {path} cannot be read: {error.strerror}") from None


def load_certificate(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    """Load a certificate into a context. Raises `EngineError` for files without it or its key."""
    _require_readable(certificate, "--tls-cert")
    if key is not None:
        _require_readable(key, "--tls-key")
    in_file = f"--tls-cert {certificate}" if key is None else f"--tls-key {key}"

    def no_passphrase() -> str:
        # Without this, OpenSSL prompts for it on the terminal.
        raise EngineError(
            f"{in_file} contains a key that a passphrase protects: give a key without a passphrase"
        )

    try:
        context.load_cert_chain(certificate, key, no_passphrase)
    except ssl.SSLError as error:
        if "KEY_VALUES_MISMATCH" in str(error):
            raise EngineError(f"{in_file} is not the key of the certificate in {certificate}") from None
        raise EngineError(
            f"--tls-cert {certificate}{'' if key is None else f' and --tls-key {key}'} contain no "
            "certificate and key in PEM form"
        ) from None


_UNTRUSTED_OTHERWISE = "the certificate of {where} is not trusted: {reason}"
_UNKNOWN_AUTHORITY = (
    "the certificate of {where} was signed by none of {authorities} ({reason}): give the server's authority "
    "as --tls-ca"
)
_ANOTHER_HOST = (
    "the certificate of {where} names another host ({reason}): connect to a host name that it contains, or "
    "ask for verify-ca"
)
_UNTRUSTED = {
    2: _UNKNOWN_AUTHORITY,
    9: "the certificate of {where} is not valid yet: check the clocks, or install a new one",
    10: "the certificate of {where} has expired: install a new one",
    18: _UNKNOWN_AUTHORITY,
    19: _UNKNOWN_AUTHORITY,
    20: _UNKNOWN_AUTHORITY,
    21: _UNKNOWN_AUTHORITY,
    62: _ANOTHER_HOST,
    64: _ANOTHER_HOST,
}
"""OpenSSL's verification codes (`X509_V_ERR_…`) → sentence."""

_FAILED = "TLS with {where} failed: {reason}"
_BAD_RECORD = "record layer failure"
_DAMAGED = ("bad record mac", _BAD_RECORD)
"""OpenSSL's reasons, in lower case, for a record that was changed in transit: of 3.0, and of 3.6."""
_NO_COMMON_VERSION = (
    "{where} supports no TLS of version {version} or later ({reason}): update the server, or lower "
    "--tls-min-version"
)
_NOTHING_IN_COMMON = (
    "{where} found no TLS that it and this machine have in common ({reason}): it may not support version "
    "{version} or later, so update it, or lower --tls-min-version"
)
_BROKEN_OFF = (
    "{where} broke off TLS: it may not support version {version} or later, or may refuse our certificate: "
    "see its error log"
)
_DAMAGED_OR_REFUSED = (
    "TLS with {where} failed ({reason}): data was changed on the way, or the server may refuse our "
    "certificate: see its error log"
)
_CLIENT_REFUSED = (
    "{where} refuses our certificate ({reason}): give one that its authority has signed, as --tls-cert "
    "and --tls-key"
)
_FAILURES = (
    ("unsupported protocol", _NO_COMMON_VERSION),
    ("protocol version", _NO_COMMON_VERSION),
    ("alert handshake failure", _NOTHING_IN_COMMON),
    ("wrong version number", _BROKEN_OFF),
    (_BAD_RECORD, _DAMAGED_OR_REFUSED),
    ("certificate required", _CLIENT_REFUSED),
    ("alert unknown ca", _CLIENT_REFUSED),
    ("alert bad certificate", _CLIENT_REFUSED),
    ("alert certificate", _CLIENT_REFUSED),
    ("alert unsupported certificate", _CLIENT_REFUSED),
)
"""Parts of OpenSSL's reasons, in lower case → sentence."""
