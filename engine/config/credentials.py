"""How to log in: passwords from wherever they are kept, and what is asked of the connection.

A password comes from a file, an environment variable, an option file or a prompt, never from an argument,
which every user of the machine could read. Accounts with several factors have several passwords, each with
settings of its own.
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.config.option_file import read_option_file
from engine.config.secret import Secret
from engine.config.server_address import Login
from engine.config.settings import given_path
from engine.config.tls import Tls, TlsMode
from engine.errors import EngineError

PASSWORD_VARIABLE = "MYSQL_PWD"
_FACTORS = ("", "2", "3")
"""What the settings of each factor's password have in their names."""


def read_login(values: Mapping[str, Any], environment: Mapping[str, str], *, interactive: bool) -> Login:
    """As whom to connect, and how safely, by the settings; asks for a missing password at a terminal.

    Raises `EngineError` for what cannot be read, or contradicts itself.
    """
    return Login(
        user=values["user"],
        passwords=_read_passwords(values, environment, interactive),
        tls=_read_tls(values),
        compression=values["compression"],
        server_public_key=_path(values["server_public_key"]),
    )


def _read_passwords(
    values: Mapping[str, Any], environment: Mapping[str, str], interactive: bool
) -> tuple[Secret, ...]:
    options = _path(values["defaults_file"])
    in_options = {} if options is None else read_option_file(options).passwords
    found = [
        _from_file(values[f"password{suffix}_file"])
        or _from_variable(values[f"password{suffix}_env"], environment)
        or in_options.get(number)
        for number, suffix in enumerate(_FACTORS)
    ]
    if found[0] is None:
        found[0] = _otherwise(values["user"], environment, interactive)
    while found[-1] is None:
        found.pop()
    return tuple(password or Secret() for password in found)


def _from_file(path: str | None) -> Secret | None:
    if path is None:
        return None
    try:
        return Secret(Path(path).read_bytes().decode("utf-8", "surrogateescape").rstrip("\r\n"))
    except OSError as error:
        raise EngineError(f"the password file {path} cannot be read: {error.strerror}") from None


def _from_variable(name: str | None, environment: Mapping[str, str]) -> Secret | None:
    if name is None:
        return None
    if name not in environment:
        raise EngineError(f"the environment variable {name} is not set")
    return Secret(environment[name])


def _otherwise(user: str, environment: Mapping[str, str], interactive: bool) -> Secret:
    if PASSWORD_VARIABLE in environment:
        return Secret(environment[PASSWORD_VARIABLE])
    return Secret(getpass.getpass(f"Password of {user}: ") if interactive else "")


def _read_tls(values: Mapping[str, Any]) -> Tls:
    # Whoever names authorities wants them to count, as MySQL's programs have it.
    default = TlsMode.PREFERRED if values["tls_ca"] is None else TlsMode.VERIFY_CA
    return Tls(
        mode=default if values["tls"] is None else TlsMode(values["tls"]),
        ca=_path(values["tls_ca"]),
        certificate=_path(values["tls_cert"]),
        key=_path(values["tls_key"]),
        minimum_version=values["tls_min_version"],
    )


def _path(value: str | None) -> Path | None:
    return None if value is None else given_path(value)
