"""Settings from flags, variables and a TOML file: which one counts, and which are refused."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from engine.cli import main
from engine.config.resolve import resolve as resolve_settings
from engine.config.setting import declared_settings, groups
from engine.config.settings import FileEventsSettings, RunSettings
from engine.config.variables import misspelled_variables
from engine.errors import EngineError

NEEDED_VARIABLES = {"BINLOG_ENGINE_USER": "repl", "BINLOG_ENGINE_OUT": "changes"}
SECRET = "hush hush"


def resolve(
    flags: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
    toml: str | None = None,
    folder: Path | None = None,
) -> dict[str, object]:
    """The settings of `run` by name, without their groups."""
    file = None
    if toml is not None:
        assert folder is not None
        file = folder / "engine.toml"
        file.write_text(toml)
    return flat(resolve_settings(RunSettings, flags or {}, {**NEEDED_VARIABLES, **(environment or {})}, file))


def flat(settings: RunSettings) -> dict[str, object]:
    nested = [getattr(settings, name) for name in groups(RunSettings)]
    return {field.name: getattr(group, field.name) for group in nested for field in fields(group)}


def test_defaults() -> None:
    values = resolve()
    assert set(values) - {"options"} == {setting.name for setting in declared_settings(RunSettings)}
    assert (values["host"], values["port"], values["tables"], values["stop_at_end"]) == (
        "127.0.0.1",
        3306,
        (),
        False,
    )


def test_flags_win_over_variables_and_variables_over_the_file(tmp_path: Path) -> None:
    flags = {"workers": "1"}
    environment = {"BINLOG_ENGINE_WORKERS": "2", "BINLOG_ENGINE_PORT": "2"}
    values = resolve(flags, environment, "workers = 3\nport = 3\ncommit_bytes = 3", tmp_path)
    assert (values["workers"], values["port"], values["commit_bytes"]) == (1, 2, 3)


def test_false_in_a_nearer_source_counts(tmp_path: Path) -> None:
    assert (
        resolve({}, {"BINLOG_ENGINE_STOP_AT_END": "0"}, "stop_at_end = true", tmp_path)["stop_at_end"]
        is False
    )


@pytest.mark.parametrize("text", ["shop.*, audit.log ,", "shop.*,audit.log"])
def test_lists(tmp_path: Path, text: str) -> None:
    expected = ("shop.*", "audit.log")
    assert resolve({"tables": text})["tables"] == expected
    assert resolve(None, {"BINLOG_ENGINE_TABLES": text})["tables"] == expected
    assert resolve(toml=f'tables = "{text}"', folder=tmp_path)["tables"] == expected
    assert resolve(toml='tables = ["shop.*", "audit.log"]', folder=tmp_path)["tables"] == expected


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ("commit_interval = 2", {"commit_interval": 2.0}),
        ("commit_interval = 0.5", {"commit_interval": 0.5}),
        ("bookkeeping_events = true", {"bookkeeping_events": True}),
        ('temporal = "text"', {"temporal": "text"}),
        ("compression = 'zlib'", {"compression": "zlib"}),
        ("password_env = 5", {"password_env": "5"}),
        ('tls_ca = "/etc/ca.pem"', {"tls_ca": Path("/etc/ca.pem")}),
        ('tls_ca = "~/ca.pem"', {"tls_ca": Path.home() / "ca.pem"}),
        ('socket = "~/mysqld.sock"', {"socket": Path.home() / "mysqld.sock"}),
        ('password_file = "~/password"', {"password_file": Path.home() / "password"}),
        ("retry_seconds = inf", {"retry_seconds": float("inf")}),
    ],
)
def test_values_of_a_file(tmp_path: Path, toml: str, expected: dict[str, Path | bool | float | str]) -> None:
    values = resolve(toml=toml, folder=tmp_path)
    assert {name: values[name] for name in expected} == expected


SENSELESS = {
    "port = 0": "at least 1 and at most 65535",
    "port = 65536": "at least 1 and at most 65535",
    "port = true": "wants a whole number, not ",
    "port = 3306.5": "wants a whole number, not ",
    'port = "many"': "wants a whole number, not ",
    "port = [3306]": "wants a whole number, not ",
    "server_id = -1": "at least 0 and at most 4294967295",
    "server_id = 4294967296": "at least 0 and at most 4294967295",
    "workers = 257": "at least 0 and at most 256",
    "commit_interval = -1": "at least 0 and at most 86400",
    "commit_interval = nan": "at least 0 and at most 86400",
    "commit_interval = inf": "at least 0 and at most 86400",
    "commit_interval = true": "wants a number, not ",
    "commit_bytes = 0": "at least 1",
    "heartbeat_seconds = 0": "at least 0.001",
    "retry_seconds = -1": "at least 0",
    "stop_at_end = 1": "wants true or false, not ",
    'stop_at_end = "perhaps"': "wants true or false, not ",
    "host = true": "wants a text, not ",
    "host = {}": "wants a text, not ",
    "tables = 5": "wants a text or a list of texts, not ",
    "tables = [true]": "wants a text or a list of texts, not ",
    "socket = true": "wants a path, not ",
    'temporal = "sundial"': "one of arrow, text",
}


@pytest.mark.parametrize("toml", SENSELESS)
def test_values_that_make_no_sense(tmp_path: Path, toml: str) -> None:
    with pytest.raises(EngineError) as refused:
        resolve(toml=toml, folder=tmp_path)
    sentence = str(refused.value)
    assert SENSELESS[toml] in sentence
    assert sentence.startswith(f"{toml.split()[0]} in {tmp_path / 'engine.toml'} ")


def test_errors_name_where_the_value_came_from() -> None:
    with pytest.raises(EngineError, match=r"^--port wants a whole number, not 'x'$"):
        resolve({"port": "x"})
    with pytest.raises(EngineError, match=r"^BINLOG_ENGINE_PORT wants a whole number, not ''$"):
        resolve(None, {"BINLOG_ENGINE_PORT": ""})


def test_misspelled_variables() -> None:
    used = ("REQUIRE_SERVERS", "CHECK_BOUNDS", "SPOOL", "WHEEL", "COMMITS", "SNAPSHOT_ROUNDS", "PORT", "HOST")
    environment = {f"BINLOG_ENGINE_{name}" for name in used} | {"COMIT_INTERVAL", "PATH"}
    assert misspelled_variables(environment) == []
    misspelled = {"BINLOG_ENGINE_USR", "BINLOG_ENGINE_COMIT_INTERVAL"}
    assert misspelled_variables(environment | misspelled) == [
        "the environment variable BINLOG_ENGINE_COMIT_INTERVAL is ignored, since no setting has it: did you "
        "mean BINLOG_ENGINE_COMMIT_INTERVAL?",
        "the environment variable BINLOG_ENGINE_USR is ignored, since no setting has it: did you "
        "mean BINLOG_ENGINE_USER?",
    ]


@pytest.mark.parametrize(
    "command",
    [
        ["status", "/nowhere"],
        ["decode", "/nowhere", "--out=/nowhere/out"],
        ["decode", "/nowhere", "--out=/nowhere/out", "--log-format=json"],
    ],
)
def test_a_misspelled_variable_is_warned_of(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BINLOG_ENGINE_COMIT_INTERVAL", "5")
    assert main(command) == 1
    first, _ = capfd.readouterr().err.splitlines()
    assert "the environment variable BINLOG_ENGINE_COMIT_INTERVAL is ignored" in first
    assert "warning" in first and first.startswith("{") == ("json" in command[-1])


def test_unknown_keys(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"has unknown settings \(hots, password\)") as refused:
        resolve(toml=f'hots = "db1"\npassword = "{SECRET}"', folder=tmp_path)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"= 5", "is not valid TOML"),
        (b"\xff\xfe", "is not valid TOML"),
        (None, "cannot be read: No such file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, content: bytes | None, reason: str) -> None:
    file = tmp_path / "engine.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(EngineError, match=reason):
        resolve_settings(RunSettings, {}, {}, file)


def test_settings_that_are_needed() -> None:
    with pytest.raises(EngineError, match=r"^--user is needed$"):
        resolve_settings(RunSettings, {}, {})
    with pytest.raises(EngineError, match=r"^--out is needed$"):
        resolve_settings(RunSettings, {"user": "repl"}, {})


def test_arguments_come_from_the_command_line_only(tmp_path: Path) -> None:
    given = {"files": [Path("a"), Path("b")], "as_json": True, "verbose": False}
    settings = resolve_settings(FileEventsSettings, given, {"BINLOG_ENGINE_FILES": "c"})
    assert settings == FileEventsSettings(files=(Path("a"), Path("b")), as_json=True)
    with pytest.raises(EngineError, match=r"has unknown settings \(report\)"):
        resolve(toml='report = "x"', folder=tmp_path)


@pytest.mark.parametrize("flag", [f"-p{SECRET}", f"--password={SECRET}"])
def test_a_password_is_not_an_argument_and_is_not_shown(
    capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["run", "--out", "x", "--user", "repl", flag])
    assert left.value.code == 2
    shown = "".join(capsys.readouterr())
    assert "a password is not accepted as an argument" in shown and SECRET not in shown


def test_a_table_pattern_without_a_database_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.commands.dispatch.start_fork_server", lambda: None)
    from engine.binlog.samples import sample_binlogs

    status = main(["decode", str(sample_binlogs()[0]), "--out", str(tmp_path / "out"), "--tables", "orders"])
    assert status == 1
    assert "--tables orders names no database" in capsys.readouterr().err
