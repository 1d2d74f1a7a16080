"""The file of a fleet: what its sources get, and one sentence for each thing that cannot be taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config.fleet_file import FleetFile, read_fleet
from engine.errors import EngineError

FILE = """
root = "{root}"
log_format = "json"
[defaults]
user = "repl"
commit_interval = 5
[source.shop]
host = "db1"
[source."crm.eu"]
host = "db2"
commit_interval = 1
out = "{root}/elsewhere"
"""


def read(folder: Path, content: str, **environment: str) -> FleetFile:
    file = folder / "fleet.toml"
    file.write_text(content.format(root=folder))
    return read_fleet(file, {}, environment)


def test_settings_of_a_source_come_before_the_defaults(tmp_path: Path) -> None:
    # Settings in the environment would be those of every source.
    fleet = read(tmp_path, FILE, BINLOG_ENGINE_HOST="other", BINLOG_ENGINE_LOG_LEVEL="debug")
    assert fleet.settings.root == tmp_path
    assert (fleet.settings.log.log_format, fleet.settings.log.log_level) == ("json", "debug")
    shop, crm = fleet.sources["shop"], fleet.sources["crm.eu"]
    assert (shop.connection.host, shop.connection.user, shop.pipeline.commit_interval) == ("db1", "repl", 5)
    assert (shop.pipeline.out, crm.pipeline.commit_interval) == (tmp_path / "shop", 1)
    assert crm.pipeline.out == tmp_path / "elsewhere"


def test_every_source_has_its_own_password(tmp_path: Path) -> None:
    (tmp_path / "crm").write_text("of a file\n")
    (tmp_path / "my.cnf").write_text("[client]\nuser=from_options\npassword=of options\n")
    fleet = read(
        tmp_path,
        """
root = "{root}"
[defaults]
user = "repl"
[source.a]
password_env = "SHOP"
[source.b]
password_file = "{root}/crm"
[source.c]
[source.d]
defaults_file = "{root}/my.cnf"
""",
    )
    found = fleet.with_logins({"SHOP": "of a variable", "MYSQL_PWD": "of all"})
    passwords = {name: source.login.passwords[0].reveal() for name, source in found.items()}
    assert passwords == {"a": "of a variable", "b": "of a file", "c": "of all", "d": "of options"}
    assert "of a" not in repr(found)
    with pytest.raises(
        EngineError, match=r"^\[source.a\] of .*fleet.toml: the environment variable SHOP is not"
    ):
        fleet.with_logins({})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("root = 5[", "the configuration file .*fleet.toml is not valid TOML"),
        ("[source.a]\nuser='u'", "^.*fleet.toml needs `root`"),
        ("root='r'", "fleet.toml has no source: add a table"),
        ("root='r'\nhosts='x'\n[source.a]\nuser='u'", r"^.*fleet.toml has unknown settings \(hosts\)"),
        ("root='r'\nsource=5", r"no table \[source\], but a value"),
        ("root='r'\n[source]\na=5", r"no table \[source.a\], but a value"),
        ("root='r'\n[source.a]\nhost='h'", r"^\[source.a\] of .*fleet.toml needs `user`"),
        ("root='r'\n[source.a]\nuser='u'\nhttp='1'", r"^\[source.a\] of .* has unknown settings \(http\)"),
        ("root='r'\n[source.a]\nuser='u'\nport=0", r"^port in \[source.a\] of .*fleet.toml is at least 1"),
        (
            "root='r'\n[defaults]\nport='x'\n[source.a]\nuser='u'",
            r"^\[source.a\] of .*: port in \[defaults\] of .*fleet.toml wants a whole number",
        ),
        ("root='r'\n[source.a]\nuser='u'\ntables='t'", r"^\[source.a\] of .*: --tables t names no database"),
        ("root='r'\n[source.a]\nuser='u'\nshard='3/2'", "--shard 3/2 is not one of several parts"),
        ("root='r'\n[source.a]\nuser='u'\nretain='30'", "30 is neither an age nor a size"),
        ("root='r'\n[source.a]\nuser='u'\nsnapshot_rate='fast'", "--snapshot-rate fast is not a rate"),
        ("root='r'\n[source.a]\nuser='u'\nhost='a,::1'", "--host a,::1 names no server in '::1'"),
        ("root='r'\n[source.a]\nuser='u'\nsnapshot_host='h:p'", "--snapshot-host names no server in 'h:p'"),
        ("root='r'\n[source.a]\nuser='u'\nsnapshot_watch='h:p'", "--snapshot-watch names no server in"),
        ("root='r'\n[source.a]\nuser='u'\nworkers=2", r"^\[source.a\] of .* has `workers`, but .* share"),
        ("root='r'\n[source.'a/b']\nuser='u'", "names a source 'a/b', which cannot be a folder"),
        ("root='r'\n[source._a]\nuser='u'", "names a source '_a'"),
        ("root='r'\n[source.'..']\nuser='u'", "names a source '..'"),
        (
            "root='r'\n[defaults]\nuser='u'\n[source.a]\n[source.b]\nout='r/x/../a'",
            "the sources a and b of .* have one output, r/x/../a",
        ),
    ],
)
def test_what_cannot_be_taken_is_named(tmp_path: Path, content: str, sentence: str) -> None:
    with pytest.raises(EngineError, match=sentence):
        read(tmp_path, content)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be read: No such file"):
        read_fleet(tmp_path / "fleet.toml", {}, {})
