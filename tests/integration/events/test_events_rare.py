"""What real servers seldom write, against what their own mysqlbinlog says of the same files."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.binlog.event_types import (
    FLAG_MARIADB_SKIP_REPLICATION,
    FLAG_SUPPRESS_USE,
    FLAG_THREAD_SPECIFIC,
    HEARTBEAT_LOG_EVENT,
    HEARTBEAT_LOG_EVENT_V2,
)
from engine.binlog.events.decoding import Event, decode_event
from engine.binlog.format_description import FormatDescription
from engine.decode.inspect.event_stream import PlacedEvent
from engine.net.protocol.commands import BINLOG_SEND_HEARTBEAT_V2, BinlogDump
from tests.servers import FLAVORS, Server, UnavailableError, get_server
from tests.servers.installations import installation
from tests.support.mysqlbinlog import print_binlog
from tests.support.rare_workload import OPTIONS, SHARED, WRITTEN, run_rare_workload
from tests.support.written_events import decode_file, fields_of

pytestmark = pytest.mark.server

LABELS = {
    "BEGIN_LOAD_QUERY_EVENT": "#Begin_load_query: file_id",
    "APPEND_BLOCK_EVENT": "#Append_block: file_id",
    "DELETE_FILE_EVENT": "#Delete_file: file_id",
    "INCIDENT_EVENT": "Incident: LOST_EVENTS",
    "STOP_EVENT": "\tStop",
}
"""How the tool prints them."""


@dataclass
class Rare:
    """The binlogs of the workload and of the shutdown, as we read them and as the tool prints them."""

    flavor: str
    events: list[PlacedEvent]
    text: str
    heartbeats: dict[int, Event]
    """Flags of the dump → the heartbeat that came."""
    end: tuple[str, int]
    """Where the server's binlog ended when it sent them."""

    def bodies(self, name: str) -> list[Any]:
        return [placed.event.body for placed in self.events if placed.event.type_name == name]

    def status(self, text: str) -> dict[str, Any]:
        """The status variables of the statement that begins like this."""
        status: dict[str, Any] = fields_of(self.statement(text).event).status
        return status

    def statement(self, text: str) -> PlacedEvent:
        """The statement that begins like this."""
        queries = (p for p in self.events if p.event.type_name == "QUERY_EVENT")
        return next(placed for placed in queries if fields_of(placed.event).statement.startswith(text))


def heartbeat(server: Server, place: tuple[str, int], flags: int) -> Event:
    """The first heartbeat of a dump from the binlog's end."""
    with server.connect() as connection, connection.cursor() as cursor:
        for name in ("master", "source"):
            cursor.execute(f"SET @{name}_heartbeat_period = 1000000, @{name}_binlog_checksum = 'CRC32'")
        request = BinlogDump(*place, server_id=77, flags=flags).build()
        connection._execute_command(request[0], request[1:])
        fmt = FormatDescription.assumed()
        while True:
            data = connection._read_packet().get_all_data()[1:]
            if data[4] == 15:
                fmt = FormatDescription.parse(data)
            if data[4] in (HEARTBEAT_LOG_EVENT, HEARTBEAT_LOG_EVENT_V2):
                return decode_event(data, fmt)


@pytest.fixture(scope="module", params=FLAVORS)
def rare(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rare]:
    folder = tmp_path_factory.mktemp(request.param)
    try:
        server = get_server(request.param, SHARED | OPTIONS[request.param])
    except UnavailableError as error:
        pytest.skip(str(error))
    with server:
        files = run_rare_workload(server, folder / "load.txt")
        end = (files[-1].name, files[-1].stat().st_size)
        heartbeats = {flags: heartbeat(server, end, flags) for flags in (0, BINLOG_SEND_HEARTBEAT_V2)}
        # MySQL's own tool has forgotten rows events of version 1, MariaDB's has not.
        reader = server.installation if request.param != "mysql-5.6" else installation("mariadb-10.11")
        tool = reader.tool("mysqlbinlog")
        server.stop()
        copies = [Path(shutil.copy(path, folder)) for path in files]
    text = "\n".join(print_binlog(tool, path).text for path in copies)
    events = [placed for path in copies for placed in decode_file(path)]
    yield Rare(request.param, events, text, heartbeats, end)


def test_all_that_was_to_be_written_is_there(rare: Rare) -> None:
    sent = {event.type_name for event in rare.heartbeats.values()}
    assert WRITTEN[rare.flavor] <= {placed.event.type_name for placed in rare.events} | sent


@pytest.mark.parametrize("name", LABELS)
def test_failures_pieces_and_shutdown(rare: Rare, name: str) -> None:
    assert len(rare.bodies(name)) == rare.text.count(LABELS[name]) > 0


def test_a_loaded_file_in_pieces(rare: Rare) -> None:
    (begin, failed), pieces = rare.bodies("BEGIN_LOAD_QUERY_EVENT"), rare.bodies("APPEND_BLOCK_EVENT")
    content = begin.block + b"".join(piece.block for piece in pieces if piece.file_id == begin.file_id)
    assert content == b"".join(b"%d\n" % number for number in range(60_000))
    (deleted,) = rare.bodies("DELETE_FILE_EVENT")
    assert deleted.file_id == failed.file_id


def test_incident(rare: Rare) -> None:
    (incident,) = rare.bodies("INCIDENT_EVENT")
    assert (incident.incident, incident.name) == (1, "LOST_EVENTS")
    assert re.search(r"writ(ten|ing) (.* )?to the bin", incident.message)


def test_settings_of_the_session(rare: Rare) -> None:
    inserted = rare.statement("INSERT INTO settings").event
    status = fields_of(inserted).status
    wants: dict[str, Any] = {
        "auto_increment_increment": 3,
        "auto_increment_offset": 2,
        "lc_time_names": 5,
        "collation_client": 8,
        "collation_connection": 8,
        "collation_database": 47,
        "microseconds": 123456,
    }
    if "mysql" in rare.flavor:
        wants |= {"time_zone": "+03:00", "updated_databases": ["rare"]}
    assert {name: status[name] for name in wants} == wants
    assert inserted.header.timestamp == 1_700_000_000
    # Foreign keys and unique keys unchecked, IS NULL finds the last key: 26, 27 and 14 in options_bits.
    assert status["flags2"] & (1 << 26 | 1 << 27 | 1 << 14) == 1 << 26 | 1 << 27 | 1 << 14
    printed = rare.text[: rare.text.index("INSERT INTO settings")]
    for line in (
        "SET TIMESTAMP=1700000000",
        "@@session.auto_increment_increment=3, @@session.auto_increment_offset=2",
        "SET @@session.lc_time_names=5",
        "SET @@session.collation_database=47",
        "@@session.foreign_key_checks=0, @@session.sql_auto_is_null=1, @@session.unique_checks=0",
        f"SET @@session.sql_mode={status['sql_mode']}",
    ):
        assert line in printed, line
    assert rare.status("UPDATE plain, settings")["table_map_for_update"] == 2
    view = rare.status("CREATE ALGORITHM")
    assert (view["invoker_user"], view["invoker_host"]) == ("root", "localhost")
    assert all("unknown_variable" not in body.status for body in rare.bodies("QUERY_EVENT"))


def test_flags_of_headers(rare: Rare) -> None:
    assert rare.statement("INSERT INTO passing").event.header.flags & FLAG_THREAD_SPECIFIC
    assert rare.statement("COMMIT").event.header.flags & FLAG_SUPPRESS_USE
    skipped = [p for p in rare.events if p.event.header.flags & FLAG_MARIADB_SKIP_REPLICATION]
    assert bool(skipped) == ("mariadb" in rare.flavor)


def test_a_statement_whose_rows_take_several_events(rare: Rare) -> None:
    """The servers cut between rows, and the last event says that it ends the statement."""
    plain = [p for p in rare.events if p.table == ("rare", "plain")]
    rows = [row["values"]["@1"] for p in plain for row in p.rows or () if row["change_type"] == "insert"]
    assert [value for value in rows if value < 200][-200:] == list(range(200))
    long = next(number for number, p in enumerate(plain) if len(p.rows or ()) > 10)
    pieces = [fields_of(p.event).end_of_statement for p in plain[long:]]
    assert pieces.index(True) >= 3
    updated = [row for p in plain for row in p.rows or () if row["change_type"] == "update_postimage"]
    assert [row["values"]["@1"] for row in updated][-200:] == list(range(1199, 999, -1))


def test_one_phase_of_xa(rare: Rare) -> None:
    if "XA_PREPARE_LOG_EVENT" not in WRITTEN[rare.flavor]:
        pytest.skip("this server writes a plain transaction")
    (prepare,) = rare.bodies("XA_PREPARE_LOG_EVENT")
    assert (prepare.one_phase, prepare.gtrid) == (True, b"once")
    assert "XA COMMIT X'6f6e6365',X'',1 ONE PHASE" in rare.text


def test_what_only_mysql_9_7_writes(rare: Rare) -> None:
    if rare.flavor != "mysql-9.7":
        pytest.skip("only MySQL 8.0 and later")
    assert rare.status("CREATE DATABASE")["default_table_encryption"] == 1
    table = rare.status("CREATE TABLE with_key")
    assert (table["sql_require_primary_key"], "ddl_xid" in table) == (1, True)
    assert table["default_collation_for_utf8mb4"] == 255
    assert rare.status("CREATE TABLE settings")["explicit_defaults_for_timestamp"] == 1
    assert rare.status("INSERT INTO settings")["enable_cascade_triggers"] == 0
    anonymous = rare.bodies("ANONYMOUS_GTID_LOG_EVENT")
    assert len(anonymous) == rare.text.count("\tAnonymous_GTID\t") > 0
    assert all(body.gtid is None and body.transaction_length for body in anonymous)


def test_rows_of_version_1_from_mysql(rare: Rare) -> None:
    if rare.flavor != "mysql-5.6":
        pytest.skip("later versions write version 2 only")
    kinds = ("WRITE_ROWS_EVENT_V1", "UPDATE_ROWS_EVENT_V1", "DELETE_ROWS_EVENT_V1")
    rows = [row for p in rare.events if p.event.type_name in kinds for row in p.rows or ()]
    assert [(row["change_type"], row["values"]["@1"]) for row in rows] == [
        ("insert", 7),
        ("update_preimage", 7),
        ("update_postimage", 8),
        ("delete", 8),
    ]


def test_gtid_flags_of_mariadb(rare: Rare) -> None:
    if "mariadb" not in rare.flavor:
        pytest.skip("only MariaDB has such")
    gtids = rare.bodies("GTID_EVENT")
    seen = {flag for body in gtids for flag in body.flags}
    assert {"standalone", "transactional", "allow_parallel", "ddl", "group_commit"} <= seen
    assert {"start_alter", "commit_alter", "rollback_alter"} <= seen
    assert ("thread_id" in seen) == (rare.flavor == "mariadb-11.8")
    together = [body.commit_id for body in gtids if "group_commit" in body.flags]
    assert len(together) == 2
    assert set(together) == {int(number) for number in re.findall(r"\bcid=(\d+)", rare.text)}
    assert len(set(together)) == 1
    starts = [int(body.gtid.split("-")[2]) for body in gtids if "start_alter" in body.flags]
    ends = [body.start_alter_sequence_number for body in gtids if body.start_alter_sequence_number]
    assert starts == ends
    assert len(starts) == 3


def test_heartbeats(rare: Rare) -> None:
    short, long = rare.heartbeats.values()
    both = "HEARTBEAT_LOG_EVENT_V2" in WRITTEN[rare.flavor]
    assert (short.header.type_code, long.header.type_code) == (
        HEARTBEAT_LOG_EVENT,
        HEARTBEAT_LOG_EVENT_V2 if both else HEARTBEAT_LOG_EVENT,
    )
    for event in (short, long):
        assert (fields_of(event).file, fields_of(event).position) == rare.end
