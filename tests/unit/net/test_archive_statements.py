"""The statements that the archive server executes, and those that it refuses."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.net.archive_server.archive import Archive
from engine.net.archive_server.session import Session
from engine.net.archive_server.statements import MAX_STATEMENT, execute_statement
from engine.net.protocol.commands import Replica
from engine.net.protocol.packets import ServerError
from engine.net.protocol.resultset import ResultSet
from tests.support.binlog_builder import write_binlog


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Archive]:
    """An archive of each flavor, without GTIDs."""
    folder = tmp_path_factory.mktemp("archives")
    made = {}
    for flavor, version in (("mysql", "8.0.36"), ("mariadb", "10.11.18-MariaDB-log")):
        paths = [folder / f"{flavor}.00000{number}" for number in (1, 2)]
        for path in paths:
            write_binlog(path, [(5, b"x" * 9)], version)
        made[flavor] = Archive(paths)
    return made


@pytest.fixture
def session(archives: dict[str, Archive]) -> Session:
    return Session(archives["mysql"], 7, "reader", replicas={9: Replica(4711, "engine", 0, "some-uuid")})


def only(result: ResultSet) -> str | None:
    ((value,),) = result
    return value


@pytest.mark.parametrize(
    ("statement", "columns", "row"),
    [
        ("SELECT VERSION()", ("VERSION()",), ("8.0.36",)),
        ("select version() as v, 1 one;", ("v", "one"), ("8.0.36", "1")),
        ("SELECT @@version_comment LIMIT 1", ("@@version_comment",), ("binlog archive",)),
        ("SELECT @@GLOBAL.server_id a,@@session.log_bin", ("a", "@@session.log_bin"), ("5", "1")),
        ("SELECT @@global.gtid_mode", ("@@global.gtid_mode",), ("OFF",)),
        ("SELECT 'it''s, a \\'b\\'' x, NULL y, @never", ("x", "y", "@never"), ("it's, a 'b'", None, None)),
        ("/* driver */ SELECT  @@Binlog_Checksum", ("@@Binlog_Checksum",), ("CRC32",)),
        ("SELECT '/*  ' a,/* ' */2\tAS\n b, '*/' c", ("a", "b", "c"), ("/*  ", "2", "*/")),
        ("SELECT CONNECTION_ID() i, USER(), DATABASE() d", ("i", "USER()", "d"), ("7", "reader@%", None)),
    ],
)  # fmt: skip
def test_selects(
    session: Session, statement: str, columns: tuple[str, ...], row: tuple[str | None, ...]
) -> None:
    result = execute_statement(statement, session)
    assert (result.columns, result) == (columns, [row])


def test_user_variables_are_remembered(session: Session) -> None:
    assert (
        execute_statement(
            "SET @master_binlog_checksum = @@global.binlog_checksum, @b:='x,y', NAMES utf8mb4", session
        )
        == []
    )
    assert session.announced_checksum == "CRC32"
    assert execute_statement("SELECT @B, @master_binlog_checksum", session) == [("x,y", "CRC32")]
    execute_statement("SET @source_heartbeat_period = 1500000000", session)
    assert session.heartbeat_seconds == 1.5
    for nonsense in ("9" * 8000, "-1", "'soon'", "NULL"):
        execute_statement(f"SET @source_heartbeat_period = {nonsense}", session)
        assert session.heartbeat_seconds == 0
    execute_statement("SET @source_heartbeat_period = 1", session)
    assert session.heartbeat_seconds == 0.001
    execute_statement("SET @slave_uuid='u'", session)
    assert session.replica_uuid == "u"


def test_a_client_without_announcements(session: Session) -> None:
    execute_statement("SET NAMES utf8mb4", session)
    assert session.announced_checksum is None
    assert session.heartbeat_seconds == 0


def test_variables(session: Session) -> None:
    assert execute_statement("SHOW VARIABLES LIKE 'binlog\\_row%'", session) == [
        ("binlog_row_image", "FULL"),
        ("binlog_row_metadata", "MINIMAL"),
    ]
    where = (
        "show global variables where Variable_name in ('LOG_BIN', \"server_id\") or variable_name = 'nothing'"
    )
    assert execute_statement(where, session) == [("log_bin", "ON"), ("server_id", "5")]
    assert len(execute_statement("SHOW VARIABLES", session)) > 30


def test_each_flavor_has_its_own_gtid_variables(archives: dict[str, Archive]) -> None:
    for flavor, name, other in (
        ("mysql", "gtid_executed", "gtid_binlog_pos"),
        ("mariadb", "gtid_binlog_pos", "gtid_executed"),
    ):
        session = Session(archives[flavor], 1, "u")
        assert only(execute_statement(f"SELECT @@{name}", session)) == ""
        with pytest.raises(ServerError, match="Unknown system variable"):
            execute_statement(f"SELECT @@{other}", session)


def test_logs_and_positions(session: Session, archives: dict[str, Archive]) -> None:
    sizes = [str(binlog.size) for binlog in archives["mysql"].binlogs]
    assert execute_statement("SHOW BINARY LOGS", session) == [
        ("mysql.000001", sizes[0]),
        ("mysql.000002", sizes[1]),
    ]
    for statement in ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"):
        result = execute_statement(statement, session)
        assert result == [("mysql.000002", sizes[1], "", "", "")]
        assert result.columns[:2] == ("File", "Position")


def test_the_gtids_before_a_position(archives: dict[str, Archive]) -> None:
    session = Session(archives["mariadb"], 1, "u")
    # As replicas ask that go by position: the first file has no name.
    assert only(execute_statement("SELECT binlog_gtid_pos('',4)", session)) == ""
    assert only(execute_statement("SELECT BINLOG_GTID_POS('nothing.000001', 4)", session)) is None


def test_replicas(session: Session) -> None:
    result = execute_statement("SHOW REPLICAS", session)
    assert dict(zip(result.columns, result[0], strict=True))["Replica_UUID"] == "some-uuid"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT `a`.name, b FROM information_schema.columns WHERE table_name = 'x'",
        "SHOW SLAVE STATUS",
        "SHOW WARNINGS",
        "SHOW FULL TABLES FROM x",
    ],
)
def test_what_an_archive_does_not_have_is_empty_and_has_columns(session: Session, statement: str) -> None:
    result = execute_statement(statement, session)
    assert result == []
    assert result.columns


@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT", "use shop", "FLUSH TABLES"])
def test_harmless_statements_are_fine(session: Session, statement: str) -> None:
    assert execute_statement(statement, session).columns == ()


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("DROP TABLE orders", 1064),
        ("SELECT 1 + 1", 1064),
        ("SELECT SLEEP(1000)", 1305),
        ("SELECT @@no_such_variable", 1193),
        ("SHOW VARIABLES LIKE '" + "%_" * 20 + "!'", 1064),
        ("SELECT " + "USER(" * 1600, 1064),
        ("SHOW BINLOG EVENTS", 1064),
        ("SELECT " + "1," * MAX_STATEMENT, 1064),
        ("", 1064),
    ],
)
def test_everything_else_is_refused_by_name(session: Session, statement: str, code: int) -> None:
    with pytest.raises(ServerError) as caught:
        execute_statement(statement, session)
    assert caught.value.code == code
    assert len(str(caught.value)) < 300


@given(
    st.sampled_from(["", "SELECT ", "SET ", "SHOW VARIABLES WHERE ", "SELECT 'a', "]), st.text(max_size=80)
)
def test_no_statement_raises_anything_else(archives: dict[str, Archive], start: str, rest: str) -> None:
    with contextlib.suppress(ServerError):
        execute_statement(start + rest, Session(archives["mysql"], 1, "u"))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1" + " " * 8000 + "x",
        "SELECT" + " " * 4000 + "1" + " " * 4000 + "x.",
        "SELECT" + "/**/" * 2000 + "x.",
        "SELECT '" + " " * 8000 + "' x.",
        "SELECT " + "'" * 8001,
        "SHOW" + " " * 4000 + "GLOBAL" + " " * 4000 + "x",
    ],
)
def test_long_gaps_take_no_long_time(session: Session, statement: str) -> None:
    assert len(statement) < MAX_STATEMENT
    begin = time.monotonic()
    with contextlib.suppress(ServerError):
        execute_statement(statement, session)
    assert time.monotonic() - begin < 5
