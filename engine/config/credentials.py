"""The login of a connection: passwords from their sources, and the options of TLS.

A password is read from a file, an environment variable, an option file or a prompt, never from an argument,
which every user of the machine could read. Accounts with several authentication factors have one password per
factor, each with its own settings.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Mapping
from pathlib import Path

from engine.config.secret import Secret
from engine.config.server_address import Login
from engine.config.setting_groups import ConnectionSettings
from engine.config.tls import Tls, TlsMode
from engine.errors import EngineError

PASSWORD_VARIABLE = "MYSQL_PWD"


def read_login(settings: ConnectionSettings, environment: Mapping[str, str], *, interactive: bool) -> Login:
    """The login that the settings describe; prompts for a missing password if `interactive`.

    Raises `EngineError` for files and variables that cannot be read, and for settings that contradict each
    other.
    """
    return Login(
        user=settings.user,
        passwords=_read_passwords(settings, environment, interactive),
        tls=_tls(settings),
        compression=settings.compression,
        server_public_key=settings.server_public_key,
    )


def read_variable(name: str, environment: Mapping[str, str]) -> Secret:
    """The password in an environment variable. Raises `EngineError` if the variable is not set."""
    if name not in environment:
        raise EngineError(f"the environment variable {name} is not set")
    return Secret(environment[name])


def _read_passwords(
    settings: ConnectionSettings, environment: Mapping[str, str], interactive: bool
) -> tuple[Secret, ...]:
    options = settings.options
    in_options = {} if options is None else options.passwords
    for path in () if options is None else options.exposed:
        print(
            f"binlog-engine: warning: every user of this machine can read the password in {path}: run chmod "
            f"go-r {path}",
            file=sys.stderr,
        )
    factors = (
        (settings.password_file, settings.password_env),
        (settings.password2_file, settings.password2_env),
        (settings.password3_file, settings.password3_env),
    )
    found: list[Secret | None] = [
        _from_file(file) or _from_variable(variable, environment) or in_options.get(factor)
        for factor, (file, variable) in enumerate(factors)
    ]
    if found[0] is None:
        found[0] = _default_password(settings.user, environment, interactive)
    while found[-1] is None:
        found.pop()
    return tuple(password or Secret() for password in found)


def _from_file(path: Path | None) -> Secret | None:
    if path is None:
        return None
    try:
        return Secret(path.read_bytes().decode("utf-8", "surrogateescape").rstrip("\r\n"))
    except OSError as error:
        raise EngineError(f"the password file {path} cannot be read: {error.strerror}") from None


def _from_variable(name: str | None, environment: Mapping[str, str]) -> Secret | None:
    return None if name is None else read_variable(name, environment)


def _default_password(user: str, environment: Mapping[str, str], interactive: bool) -> Secret:
    if PASSWORD_VARIABLE in environment:
        return Secret(environment[PASSWORD_VARIABLE])
    if not interactive:
        return Secret()
    try:
        return Secret(getpass.getpass(f"Password of {user}: "))
    except EOFError:
        raise EngineError("no password was entered: enter it, or give it as --password-file") from None


def _tls(settings: ConnectionSettings) -> Tls:
    # As in MySQL's programs, naming authorities asks for verification.
    default = TlsMode.PREFERRED if settings.tls_ca is None else TlsMode.VERIFY_CA
    return Tls(
        mode=default if settings.tls is None else TlsMode(settings.tls),
        ca=settings.tls_ca,
        certificate=settings.tls_cert,
        key=settings.tls_key,
        minimum_version=settings.tls_min_version,
    )
