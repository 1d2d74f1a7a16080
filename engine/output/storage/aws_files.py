"""Credentials and region of S3 from the files of AWS's own tools, which obstore does not read.

They are `~/.aws/credentials` and `~/.aws/config`, or those that AWS_SHARED_CREDENTIALS_FILE and
AWS_CONFIG_FILE name; the profile is that of AWS_PROFILE, else `default`. Variables of the environment have
precedence. No error contains a line of a file, which might contain a secret.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path

from engine.errors import EngineError

_DEFAULT = "default"
_GIVES_CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SKIP_SIGNATURE")
"""Variables that say that the credentials are not those of a file."""
_CREDENTIALS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}
"""Key in a file → obstore's option."""
_SETTINGS = {
    "region": ("region", ("AWS_REGION", "AWS_DEFAULT_REGION")),
    "endpoint_url": ("endpoint", ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")),
}
"""Key in a file → obstore's option, and the variables that have precedence."""
_FURTHER_STEPS = ("credential_process", "role_arn", "sso_session", "sso_start_url", "login_session")
"""Keys of profiles whose credentials have to be fetched by a program, or from a service."""


def aws_file_options(environment: Mapping[str, str]) -> dict[str, str]:
    """The options of a store that the files give and the environment does not.

    Raises `EngineError` for a profile that does not exist, or needs a program to get credentials, and for a
    file that cannot be read.
    """
    chosen = environment.get("AWS_PROFILE")
    profile = chosen or _DEFAULT
    config = _section(environment, "AWS_CONFIG_FILE", "config", (f"profile {profile}", profile))
    credentials = _section(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials", (profile,))
    if chosen and config is None and credentials is None:
        raise EngineError(
            f"AWS_PROFILE is {chosen}, and neither ~/.aws/config nor ~/.aws/credentials has this profile: "
            "correct one of them"
        )
    found = {**(config or {}), **(credentials or {})}
    options = {
        option: found[key]
        for key, (option, variables) in _SETTINGS.items()
        if found.get(key) and not any(environment.get(variable) for variable in variables)
    }
    if any(environment.get(variable) for variable in _GIVES_CREDENTIALS):
        return options
    if "aws_access_key_id" in found:
        return options | {option: found[key] for key, option in _CREDENTIALS.items() if found.get(key)}
    for key in _FURTHER_STEPS:
        if key in found:
            raise EngineError(
                f"the AWS profile {profile} gets its credentials with `{key}`, which is not supported: "
                f'`eval "$(aws configure export-credentials --profile {profile} --format env)"` puts them '
                "into the environment"
            )
    return options


def _section(
    environment: Mapping[str, str], variable: str, default_name: str, names: tuple[str, ...]
) -> dict[str, str] | None:
    """The first of these sections that a file has; None if there is none, or no file."""
    if not (given := environment.get(variable) or environment.get("HOME")):
        return None
    path = Path(given).expanduser() if environment.get(variable) else Path(given) / ".aws" / default_name
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError):
        raise EngineError(
            f"{path} cannot be read as a file of AWS profiles: correct it, or give credentials in "
            "the environment"
        ) from None
    return next((dict(parser[name]) for name in names if parser.has_section(name)), None)
