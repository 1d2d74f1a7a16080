"""Profiles in the files of AWS's tools, and what has precedence over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config.output_place import StoreUrl
from engine.errors import EngineError
from engine.output.storage.aws_files import aws_file_options
from engine.output.storage.object_store import ObjectStore

SECRET = "wJalrXUtnFEMI/K7MDENG%bPxRfi"
CREDENTIALS = f"""
[default]
aws_access_key_id = one
aws_secret_access_key = {SECRET}

[lake]
aws_access_key_id=two
aws_secret_access_key={SECRET}2
aws_session_token=token
region = eu-north-1
"""
CONFIG = """
[default]
region = eu-central-1
s3 =
    addressing_style = path

[profile lake]
region = us-east-2
endpoint_url = https://lake.example

[profile corporate]
sso_session = corporate
"""


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment with files."""
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text(CREDENTIALS)
    (folder / "config").write_text(CONFIG)
    return {"HOME": str(tmp_path)}


DEFAULT = {"access_key_id": "one", "secret_access_key": SECRET, "region": "eu-central-1"}
LAKE = {
    "access_key_id": "two",
    "secret_access_key": SECRET + "2",
    "session_token": "token",
    "region": "eu-north-1",
    "endpoint": "https://lake.example",
}


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({}, DEFAULT),
        ({"AWS_PROFILE": "lake"}, LAKE),
        ({"AWS_REGION": "x"}, {key: value for key, value in DEFAULT.items() if key != "region"}),
        ({"AWS_ACCESS_KEY_ID": "x"}, {"region": "eu-central-1"}),
        ({"AWS_PROFILE": "corporate", "AWS_ACCESS_KEY_ID": "x"}, {}),
        ({"AWS_SHARED_CREDENTIALS_FILE": "/nowhere"}, {"region": "eu-central-1"}),
        ({"HOME": "/nowhere"}, {}),
    ],
)
def test_profiles(home: dict[str, str], environment: dict[str, str], options: dict[str, str]) -> None:
    assert aws_file_options(home | environment) == options


def test_files_elsewhere(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(CREDENTIALS.replace("one", "three"))
    environment = {"HOME": home["HOME"], "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "keys")}
    assert aws_file_options(environment)["access_key_id"] == "three"


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [
        ("corporate", "the AWS profile corporate gets its credentials with `sso_session`, which is not"),
        ("unknown", "AWS_PROFILE is unknown, and neither ~/.aws/config nor ~/.aws/credentials has this"),
    ],
)
def test_profiles_that_are_refused(home: dict[str, str], profile: str, sentence: str) -> None:
    with pytest.raises(EngineError, match=sentence):
        aws_file_options(home | {"AWS_PROFILE": profile})


def test_no_secret_is_shown(home: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", home["HOME"])
    store = ObjectStore(StoreUrl.parse("s3://lake/x"))
    assert store._store.config["access_key_id"] == "one"
    assert SECRET not in f"{store!r} {store._store!r} {vars(store)}"
    (tmp_path / ".aws" / "credentials").write_text(f"aws_secret_access_key {SECRET}")
    with pytest.raises(EngineError) as error:
        ObjectStore(StoreUrl.parse("s3://lake/x"))
    assert SECRET not in str(error.value)
    assert "cannot be read as a file of AWS profiles" in str(error.value)
    assert error.value.__cause__ is None
