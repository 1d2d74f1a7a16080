"""Collation ids: those that servers have by themselves, and those that an administrator added.

The character set of an added collation is in no table of the engine. It follows from the statement that made
the column, or from the server's catalog.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.binlog.collations import collation_name
from engine.output.reader import Changes
from tests.conftest import skip_or_fail
from tests.servers import FLAVORS, NO_ROW_METADATA, Server, UnavailableError, get_server
from tests.servers.installations import installation
from tests.support.engine_run import assert_one_sentence, drain, run_command

pytestmark = [pytest.mark.server, pytest.mark.fewer_servers]

DATABASE = "added"
RULES = "<rules><reset>a</reset><p>b</p></rules>"
ADDED = {
    "ucs2": f'<collation name="ucs2_added_ci" id="1029">{RULES}</collation>',
    "utf8mb4": f'<collation name="utf8mb4_added_ci" id="1038">{RULES}</collation>',
    "cp1251": '<collation name="cp1251_added_ci" id="1051"/>',
}
"""Character set → what is added to it. Without 1024 the ids are those of other character sets."""
COLUMNS = """
    id INT PRIMARY KEY,
    wide VARCHAR(20) CHARACTER SET ucs2 COLLATE ucs2_added_ci,
    byte VARCHAR(20) CHARACTER SET cp1251 COLLATE cp1251_added_ci,
    body TEXT COLLATE cp1251_added_ci,
    kind ENUM('да', 'нет') COLLATE cp1251_added_ci,
    kinds SET('раз', 'два') COLLATE cp1251_added_ci,
    utf8 VARCHAR(20) COLLATE utf8mb4_added_ci
"""
NAMES = ("id", "wide", "byte", "body", "kind", "kinds", "utf8")
VALUES = ("'широкий', 'байт', 'текст', 'нет', 'раз,два', 'ю🙂'", "'', NULL, 'ё', 'да', 'два', 'z'")

ALL_COLLATIONS = {
    flavor: "SELECT ID, COLLATION_NAME FROM information_schema.COLLATIONS"
    if "mysql" in flavor
    else "SELECT ID, FULL_COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
    for flavor in FLAVORS
}


def test_every_collation_of_the_server_is_known(server: Server) -> None:
    flavor = "mariadb" if "mariadb" in server.flavor else "mysql"
    own = {int(number): str(name) for number, name in server.query(ALL_COLLATIONS[server.flavor])}
    ours = {number: (collation_name(number, flavor) or "") for number in own}
    assert ours == {number: name.replace("utf8_", "utf8mb3_") for number, name in own.items()}


def charsets_with_additions(flavor: str, folder: Path) -> Path:
    """A copy of the server's definitions of character sets, with those of `ADDED`."""
    share = installation(flavor).share
    assert share is not None
    charsets = Path(shutil.copytree(share / "charsets", folder / "charsets"))
    added = [f'<charset name="{charset}">{collation}</charset>' for charset, collation in ADDED.items()]
    index = (charsets / "Index.xml").read_text()
    (charsets / "Index.xml").write_text(index.replace("</charsets>", "".join([*added, "</charsets>"])))
    weights = " ".join(f"{byte:02X}" for byte in range(256))
    definition = (charsets / "cp1251.xml").read_text()
    collation = f'<collation name="cp1251_added_ci"><map>{weights}</map></collation>'
    (charsets / "cp1251.xml").write_text(definition.replace("</charset>", f"{collation}</charset>"))
    return charsets


CASES = [
    (flavor, metadata)
    for flavor in FLAVORS
    for metadata in (("MINIMAL",) if flavor in NO_ROW_METADATA else ("MINIMAL", "FULL"))
]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def extended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with added collations."""
    flavor, metadata = request.param
    charsets = charsets_with_additions(flavor, tmp_path_factory.mktemp(flavor))
    options: dict[str, str | None] = {"character_sets_dir": str(charsets)}
    if flavor not in NO_ROW_METADATA:
        options["binlog_row_metadata"] = metadata
    try:
        server = get_server(flavor, options)
    except UnavailableError as error:
        skip_or_fail(error)
    with server:
        yield server


@pytest.fixture
def cursor(extended: Server) -> Iterator[Any]:
    """A cursor in an empty database."""
    extended.execute(
        f"DROP DATABASE IF EXISTS {DATABASE}", f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4"
    )
    with extended.connect(database=DATABASE, charset="utf8mb4") as connection, connection.cursor() as cursor:
        yield cursor


def new_binlog(server: Server) -> Path:
    server.flush_binlog()
    return server.binlogs()[-1]


def create(cursor: Any) -> None:
    cursor.execute(f"CREATE TABLE t ({COLUMNS}) CHARACTER SET utf8mb4")


def insert(cursor: Any) -> list[dict[str, Any]]:
    """Insert all values; what SELECT shows of them."""
    for number, values in enumerate(VALUES):
        cursor.execute(f"INSERT INTO t VALUES ({number}, {values})")
    cursor.connection.commit()
    cursor.execute("SELECT * FROM t ORDER BY id")
    return [dict(zip(NAMES, row, strict=True)) for row in cursor.fetchall()]


def ingested(server: Server, out: Path, start: str) -> list[dict[str, Any]]:
    drain(server, out, start=start, tables=f"{DATABASE}.*")
    return Changes(out).read(DATABASE, "t").select(list(NAMES)).to_pylist()


def test_a_table_that_the_stream_defines(extended: Server, cursor: Any, tmp_path: Path) -> None:
    binlog = new_binlog(extended)
    create(cursor)
    selected = insert(cursor)
    assert ingested(extended, tmp_path / "out", f"{binlog.name}:4") == selected


def test_a_table_that_only_the_catalog_defines(extended: Server, cursor: Any, tmp_path: Path) -> None:
    create(cursor)
    binlog = new_binlog(extended)
    selected = insert(cursor)
    assert ingested(extended, tmp_path / "out", f"{binlog.name}:4") == selected


def test_a_snapshot(extended: Server, cursor: Any, tmp_path: Path) -> None:
    create(cursor)
    selected = insert(cursor)
    rows = ingested(extended, tmp_path / "out", "snapshot")
    assert sorted(rows, key=lambda row: int(row["id"])) == selected


def test_a_file_without_the_definition_is_refused(extended: Server, cursor: Any, tmp_path: Path) -> None:
    create(cursor)
    binlog = new_binlog(extended)
    insert(cursor)
    extended.flush_binlog()
    ended = run_command("decode", str(binlog), "--out", str(tmp_path / "out"), "--unknown-columns=stop")
    assert ended.status != 0
    assert_one_sentence(ended)
    has_names = ("binlog_row_metadata", "FULL") in extended.query("SHOW VARIABLES LIKE 'binlog_row_metadata'")
    assert ("an added collation (1029, 1038, 1051)" if has_names else "cannot be named") in ended.sentence
