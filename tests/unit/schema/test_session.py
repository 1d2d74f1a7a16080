"""What a QUERY event tells of the session, and the servers' defaults for what it does not tell."""

from __future__ import annotations

from typing import Any

import pytest

from engine.binlog.collations import canonical, collation_name
from engine.schema.collations import default_collation, shown_charset, shown_collation
from engine.schema.server_settings import ServerSettings
from engine.schema.session import session_of, version_of
from tests.support.ddl import MARIADB_11, MYSQL_9, MYSQL_56, flavor_of, query


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("9.7.4-2", (9, 7, 4)),
        ("8.0.36", (8, 0, 36)),
        ("5.6.24-log", (5, 6, 24)),
        ("5.5.5-10.1.48-MariaDB-log", (10, 1, 48)),
        ("10.11.18-MariaDB-0+deb12u1-log", (10, 11, 18)),
        ("5.7.20-19-log", (5, 7, 20)),
        ("8.0.1a-x", (8, 0, 1)),
        ("", ()),
    ],
)
def test_versions(text: str, version: tuple[int, ...]) -> None:
    assert version_of(text) == version


def test_what_the_event_contains() -> None:
    event = query("", version=MYSQL_9, sql_mode=1 | 4 | 1 << 20, collation_server=8)
    session = session_of(event, MYSQL_9, "mysql")
    assert (session.ansi_quotes, session.backslash_escapes, session.real_as_float) == (True, False, True)
    assert (session.strict, session.server_collation, session.database) == (
        False,
        "latin1_swedish_ci",
        "shop",
    )


def test_what_utf8_is() -> None:
    alias = 1 << 33
    for version, sql_mode, given, utf8 in (
        (MYSQL_9, 0, "utf8mb3", "utf8mb3"),
        (MYSQL_9, alias, "utf8mb3", "utf8mb4"),
        (MARIADB_11, alias, "utf8mb3", "utf8mb3"),
        (MARIADB_11, 0, "utf8mb4", "utf8mb4"),
    ):
        event = query("", version=version, sql_mode=sql_mode)
        assert session_of(event, version, flavor_of(version), ServerSettings(utf8=given)).utf8 == utf8


@pytest.mark.parametrize(
    ("version", "status", "explicit"),
    [
        (MYSQL_9, {"explicit_defaults_for_timestamp": 0}, False),
        (MYSQL_9, {"explicit_defaults_for_timestamp": 1}, True),
        (MYSQL_56, {}, False),
        (MARIADB_11, {"flags2": 0}, False),
        (MARIADB_11, {"flags2": 1 << 24}, True),
        ("10.4.34-MariaDB", {"flags2": 1 << 24}, False),
        ("10.5.16-MariaDB", {"flags2": 1 << 24}, False),
        ("10.5.17-MariaDB", {"flags2": 1 << 24}, True),
        ("10.6.1-MariaDB", {"flags2": 0}, False),
        ("10.6.9-MariaDB", {"flags2": 1 << 24}, True),
        ("10.9.2-MariaDB", {"flags2": 0}, False),
        ("10.10.2-MariaDB", {"flags2": 0}, False),
        ("10.10.2-MariaDB", {}, True),
    ],
)
def test_explicit_defaults_for_timestamp(version: str, status: dict[str, Any], explicit: bool) -> None:
    event = query("", version=MYSQL_56, **status)
    assert session_of(event, version, flavor_of(version)).explicit_timestamp == explicit


@pytest.mark.parametrize(
    ("version", "status", "setting", "explicit"),
    [
        (MYSQL_56, {}, True, True),
        ("5.6.51", {}, True, True),
        ("5.5.62", {}, True, False),
        (MYSQL_56, {"explicit_defaults_for_timestamp": 0}, True, False),
        (MYSQL_56, {}, None, False),
    ],
)
def test_the_servers_setting_counts_where_events_lack_it(
    version: str, status: dict[str, Any], setting: bool | None, explicit: bool
) -> None:
    settings = ServerSettings(explicit_timestamp=setting, version=(5, 6, 24))
    event = query("", version=MYSQL_56, **status)
    assert session_of(event, version, "mysql", settings).explicit_timestamp == explicit


def test_default_collations_of_the_session() -> None:
    event = query("", version=MYSQL_9, default_collation_for_utf8mb4=45)
    assert session_of(event, MYSQL_9, "mysql").default_collation("utf8mb4") == "utf8mb4_general_ci"
    mariadb = session_of(query("", version=MARIADB_11), MARIADB_11, "mariadb")
    assert mariadb.default_collation("utf8mb4") == "utf8mb4_uca1400_ai_ci"
    assert mariadb.default_collation("latin1") == "latin1_swedish_ci"
    assert mariadb.default_collation("nosuch") is None


@pytest.mark.parametrize(
    ("number", "mysql", "mariadb"),
    [
        (8, "latin1_swedish_ci", "latin1_swedish_ci"),
        (33, "utf8mb3_general_ci", "utf8mb3_general_ci"),
        (63, "binary", "binary"),
        (246, "utf8mb4_unicode_520_ci", "utf8mb4_unicode_520_ci"),
        (213, "utf8mb3_croatian_ci", "utf8mb3_croatian_mysql561_ci"),
        (255, "utf8mb4_0900_ai_ci", "utf8mb4_0900_ai_ci"),
        (270, "utf8mb4_es_trad_0900_ai_ci", "utf8mb4_es_trad_0900_ai_ci"),
        (303, "utf8mb4_ja_0900_as_cs", "utf8mb4_ja_0900_as_cs"),
        (323, "utf8mb4_mn_cyrl_0900_as_cs", "utf8mb4_mn_cyrl_0900_as_cs"),
        (576, None, "utf8mb3_croatian_ci"),
        (1032, None, "latin1_swedish_nopad_ci"),
        (1107, None, "utf8mb3_nopad_bin"),
        (1029, None, None),
        (2304, None, "utf8mb4_uca1400_ai_ci"),
        (9999, None, None),
    ],
)
def test_collation_ids(number: int, mysql: str | None, mariadb: str | None) -> None:
    assert (collation_name(number, "mysql"), collation_name(number, "mariadb")) == (mysql, mariadb)


def test_names_of_utf8() -> None:
    names = [canonical(name) for name in ("UTF8", "utf8_bin", "utf8mb4_bin")]
    assert names == ["utf8mb3", "utf8mb3_bin", "utf8mb4_bin"]
    shown = [
        (shown_charset("utf8mb3", "mysql", version), shown_collation("utf8mb3_bin", "mysql", version))
        for version in ((5, 7, 44), (8, 0, 29), (8, 0, 30))
    ]
    assert shown == [("utf8", "utf8_bin"), ("utf8mb3", "utf8_bin"), ("utf8mb3", "utf8mb3_bin")]
    assert shown_collation("utf8mb3_bin", "mariadb", (10, 5, 9)) == "utf8_bin"
    assert shown_charset("utf8mb4", "mariadb", (10, 5, 9)) == "utf8mb4"


def test_the_default_collation_of_utf8mb4() -> None:
    assert default_collation("utf8mb4", "mysql", (5, 7, 44)) == "utf8mb4_general_ci"
    assert default_collation("utf8mb4", "mysql", (8, 0, 36)) == "utf8mb4_0900_ai_ci"
    assert default_collation("utf8mb4", "mariadb", (11, 8, 6)) == "utf8mb4_general_ci"
