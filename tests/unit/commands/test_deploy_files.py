"""The files in docs/deploy: the engine takes their command lines and settings."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from engine.cli import main

DEPLOY = Path(__file__).parents[3] / "docs" / "deploy"
UNIT = DEPLOY / "binlog-engine@.service"
FLEET_UNIT = DEPLOY / "binlog-engine-fleet.service"


@pytest.fixture
def closed_port() -> int:
    """A port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _folder(tmp_path: Path, settings: str, port: int) -> Path:
    """The folder with the configuration and the password."""
    local = re.sub(r"^host = .*$", f'host = "127.0.0.1"\nport = {port}', settings, flags=re.M)
    (tmp_path / "shop.toml").write_text(local)
    (tmp_path / "password").write_text("secret\n")
    return tmp_path


def test_the_unit_starts_the_engine(
    tmp_path: Path, closed_port: int, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = _folder(tmp_path, 'host = ""\nuser = "repl"\n', closed_port)
    (line,) = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(), re.M)
    for specifier, value in (("/etc/binlog-engine", folder), ("%i", "shop"), ("%d", folder), ("%S", folder)):
        line = line.replace(specifier, str(value))
    (folder / "binlog-engine").mkdir()
    _, *arguments = shlex.split(line.replace("%t", str(folder)))
    assert main(arguments) == 1
    assert f"127.0.0.1:{closed_port}" in capfd.readouterr().err


def test_the_unit_of_a_fleet_reads_its_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The lines that the unit tells one to write are a fleet's; here the password is missing."""
    text = FLEET_UNIT.read_text()
    root, password = re.findall(r"^#     (\w+ = .*)$", text, re.M)
    root = root.replace("/var/lib", str(tmp_path))
    (tmp_path / "fleet.toml").write_text(f'{root}\n[source.shop]\nhost = "db1"\nuser = "repl"\n{password}\n')
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.M)
    _, *arguments = shlex.split(line.replace("/etc/binlog-engine", str(tmp_path)))
    assert main(arguments) == 1
    assert "/run/credentials/binlog-engine-fleet.service/passwords_shop" in capfd.readouterr().err


def test_the_stateful_set_starts_the_engine(
    tmp_path: Path, closed_port: int, capfd: pytest.CaptureFixture[str]
) -> None:
    text = (DEPLOY / "kubernetes.yaml").read_text()
    (block,) = re.findall(r"engine\.toml: \|\n((?: {4}.*\n)+)", text)
    settings = re.sub("^    ", "", block, flags=re.M).replace("/data/shop", str(tmp_path / "out"))
    settings = settings.replace('"0.0.0.0:9187"', '"127.0.0.1:0"')
    folder = _folder(tmp_path, settings, closed_port)
    (given,) = re.findall(r"args: \[(.*)\]", text)
    given = given.replace("/etc/binlog-engine/engine.toml", str(folder / "shop.toml"))
    arguments = given.replace("/run/secrets/binlog-engine", str(folder)).split(", ")
    assert main(arguments) == 1
    assert f"127.0.0.1:{closed_port}" in capfd.readouterr().err


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="this machine has no systemd-analyze")
@pytest.mark.parametrize("unit", [UNIT, FLEET_UNIT])
def test_the_unit_is_confined(unit: Path) -> None:
    """`systemd-analyze security` gives exposures from 0 to 10; the option takes tenths."""
    checked = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "nrecognized option" in checked.stderr:
        pytest.skip("this systemd-analyze checks only units that are installed")
    assert checked.returncode == 0, checked.stdout[-500:] + checked.stderr
