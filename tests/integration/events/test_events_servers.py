"""Every kind of event that real servers write, against what their own mysqlbinlog says of the same file."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.binlog.events.decoding import decode_event
from engine.binlog.events.statements import Query
from engine.binlog.events.transactions import Gtid
from engine.binlog.files import read_events
from engine.binlog.format_description import FormatDescription
from engine.binlog.gtid_set import MysqlGtidSet
from engine.decode.inspect.event_stream import PlacedEvent
from engine.errors import EventError
from tests.servers import FLAVORS, UnavailableError, get_server
from tests.support.binlog_builder import resized
from tests.support.event_workload import OPTIONS, run_workload
from tests.support.mysqlbinlog import Printout, print_binlog
from tests.support.written_events import LABELS, WRITTEN, decode_file, fields_of

pytestmark = pytest.mark.server


@dataclass
class Written:
    """A server's binlog of the workload, as we read it and as the server's own tool prints it."""

    flavor: str
    path: Path
    events: list[PlacedEvent]
    printed: Printout
    next_path: Path
    executed: str
    """The server's executed GTID set when `next_path` had begun; empty for MariaDB."""

    def of_type(self, *names: str) -> list[PlacedEvent]:
        return [placed for placed in self.events if placed.event.type_name in names]


@pytest.fixture(scope="module", params=FLAVORS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    folder = tmp_path_factory.mktemp(request.param)
    try:
        server = get_server(request.param, OPTIONS[request.param])
    except UnavailableError as error:
        pytest.skip(str(error))
    with server:
        files = [Path(shutil.copy(path, folder)) for path in run_workload(server, folder / "load.txt")]
        tool = server.tool("mariadb-binlog" if server.installation.flavor.is_mariadb else "mysqlbinlog")
        path, next_path = files[-2:]
        executed = ""
        if not server.installation.flavor.is_mariadb:
            executed = server.query("SELECT @@global.gtid_executed")[0][0].replace("\n", "")
        yield Written(request.param, path, decode_file(path), print_binlog(tool, path), next_path, executed)


def test_every_kind_of_event_is_there(written: Written) -> None:
    assert {placed.event.type_name for placed in written.events} == WRITTEN[written.flavor]


def test_positions(written: Written) -> None:
    # The tool gives events of a compressed transaction the place of its end.
    ours = [placed.end_position if placed.in_payload else placed.position for placed in written.events]
    ours = [
        position
        for position, placed in zip(ours, written.events, strict=True)
        if placed.event.type_name != "ANNOTATE_ROWS_EVENT"
    ]
    printed = written.printed.positions
    if written.flavor.startswith("mariadb"):
        printed = sorted(set(printed) & set(ours))
    assert ours == printed


def test_types_times_and_ends(written: Written) -> None:
    ours = [placed for placed in written.events if placed.event.type_name != "ANNOTATE_ROWS_EVENT"]
    printed = [event for event in written.printed.events if not event.label.startswith("Annotate_rows")]
    assert len(ours) == len(printed)
    for placed, event in zip(ours, printed, strict=True):
        header = placed.event.header
        assert event.label.lstrip().startswith(LABELS[header.type_name]), placed
        assert (header.timestamp, header.server_id) == (event.timestamp, event.server_id)
        assert header.next_position == (0 if placed.in_payload else event.end_position)
        # MariaDB 11 leaves the position of events inside a transaction at 0.
        assert event.end_position in (0, placed.end_position)


def test_statements(written: Written) -> None:
    queries = written.of_type("QUERY_EVENT", "QUERY_COMPRESSED_EVENT", "EXECUTE_LOAD_QUERY_EVENT")
    for placed in queries:
        body = placed.event.body
        assert isinstance(body, Query)
        if "LOAD DATA" not in body.statement:
            assert body.statement in written.printed.text
        assert body.database == "shop"
        assert body.statement_bytes is None
    for placed in written.of_type("ROWS_QUERY_LOG_EVENT", "ANNOTATE_ROWS_EVENT"):
        for line in fields_of(placed.event).statement.splitlines():
            assert line in written.printed.text


def test_session_settings(written: Written) -> None:
    statuses = {
        fields_of(placed.event).statement: fields_of(placed.event).status
        for placed in written.of_type("QUERY_EVENT")
    }
    zone = next(status for text, status in statuses.items() if "'zone'" in text)
    if written.flavor.startswith("mysql"):
        assert zone["time_zone"] == "+02:00"
    month = next(status for text, status in statuses.items() if "DATE_FORMAT" in text)
    assert month["lc_time_names"] == 4
    view = next(status for text, status in statuses.items() if "VIEW `view1`" in text)
    assert (view["collation_client"], view["invoker_user"], view["invoker_host"]) == (8, "root", "localhost")
    modes = {status["sql_mode"] for status in statuses.values()}
    assert {int(mode) for mode in re.findall(r"SET @@session.sql_mode=(\d+)", written.printed.text)} == modes
    for status in statuses.values():
        assert "unknown_variable" not in status


def test_context_of_statements(written: Written) -> None:
    text = written.printed.text
    ours = [
        f"SET {fields_of(placed.event).kind}={fields_of(placed.event).value}/*!*/;"
        for placed in written.of_type("INTVAR_EVENT")
    ]
    assert ours == re.findall(r"^SET (?:LAST_)?INSERT_ID=\d+/\*!\*/;$", text, re.MULTILINE)
    (rand,) = (fields_of(placed.event) for placed in written.of_type("RAND_EVENT"))
    assert f"@@RAND_SEED1={rand.seed1}, @@RAND_SEED2={rand.seed2}" in text
    variables = {
        fields_of(placed.event).name: fields_of(placed.event) for placed in written.of_type("USER_VAR_EVENT")
    }
    assert {name: (body.type, body.value) for name, body in variables.items()} == {
        "s": ("string", "text"),
        "i": ("integer", -5),
        "u": ("integer", 18446744073709551615),
        "d": ("real", 1.5),
        "dec": ("decimal", "-12345.6789"),
        "n": ("null", None),
    }


def test_load_data(written: Written) -> None:
    (begin,) = (fields_of(placed.event) for placed in written.of_type("BEGIN_LOAD_QUERY_EVENT"))
    (execute,) = (fields_of(placed.event) for placed in written.of_type("EXECUTE_LOAD_QUERY_EVENT"))
    assert begin.block == b"100\tloaded\n101\tzwei\n"
    assert execute.file_id == begin.file_id
    assert execute.duplicates == "REPLACE"
    statement = execute.statement.encode()
    assert b"load.txt" in statement[execute.file_name_start : execute.file_name_end]


def test_gtids(written: Written) -> None:
    text = written.printed.text
    if written.flavor.startswith("mariadb"):
        ours = [fields_of(placed.event).gtid for placed in written.of_type("GTID_EVENT")]
        assert ours == re.findall(r"\sGTID (\d+-\d+-\d+)", text)
        prepared, completed = (
            next(
                fields_of(placed.event)
                for placed in written.of_type("GTID_EVENT")
                if flag in fields_of(placed.event).flags
            )
            for flag in ("prepared_xa", "completed_xa")
        )
        for body in (prepared, completed):
            assert (body.xa_format_id, body.xa_gtrid, body.xa_bqual) == (7, b"gt", b"bq")
        return
    bodies = [
        fields_of(placed.event) for placed in written.of_type("GTID_LOG_EVENT", "GTID_TAGGED_LOG_EVENT")
    ]
    assert [body.gtid for body in bodies] == re.findall(r"GTID_NEXT= '([0-9a-f-]{36}:[^']+)'", text)
    if written.flavor == "mysql-9.7":
        shown = [
            f"last_committed={body.last_committed}\tsequence_number={body.sequence_number}\t"
            f"rbr_only={'no' if body.may_have_statements else 'yes'}\t"
            f"original_committed_timestamp={body.original_commit_timestamp}\t"
            f"immediate_commit_timestamp={body.immediate_commit_timestamp}\t"
            f"transaction_length={body.transaction_length}"
            for body in bodies
            if isinstance(body, Gtid)
        ]
        assert shown == re.findall(r"(last_committed=.*transaction_length=\d+)", text)
        versions = {body.immediate_server_version for body in bodies}
        assert {str(version) for version in versions} == set(
            re.findall(r"SET @@session.immediate_server_version=(\d+)", text)
        )


def test_transaction_lengths_are_those_of_the_events(written: Written) -> None:
    if written.flavor != "mysql-9.7":
        pytest.skip("only MySQL 8.0 and later write the length")
    outer = [placed for placed in written.events if not placed.in_payload]
    begins = [i for i, placed in enumerate(outer) if isinstance(placed.event.body, Gtid)]
    for begin, following in zip(begins, [*begins[1:], len(outer) - 1], strict=True):
        length = sum(placed.event.header.size for placed in outer[begin:following])
        assert fields_of(outer[begin].event).transaction_length == length


def test_gtid_set_at_the_next_file(written: Written) -> None:
    second = decode_file(written.next_path)[1].event
    if written.flavor.startswith("mariadb"):
        last = fields_of(written.of_type("GTID_EVENT")[-1].event).gtid
        assert fields_of(second).gtids == (last,)
    else:
        executed = MysqlGtidSet.parse(fields_of(second).gtid_set)
        for placed in decode_file(written.next_path):
            body = placed.event.body
            if isinstance(body, Gtid):
                assert body.source is not None and body.number is not None
                executed.add(body.source, body.number, body.number)
        everything = dict(MysqlGtidSet.parse(written.executed).intervals())
        assert set(executed.intervals()) <= set(everything.items())
        assert len(list(executed.intervals())) == (2 if written.flavor == "mysql-9.7" else 1)


def test_rows(written: Written) -> None:
    verbs = {"insert": "INSERT INTO", "delete": "DELETE FROM"}
    ours = []
    for placed in written.events:
        if placed.rows is not None and placed.table in (("shop", "pk"), ("shop", "parts")):
            for row in placed.rows:
                ours.append((verbs.get(row["change_type"], "UPDATE"), *placed.table, _printed(row["values"])))
    printed = [row for event in written.printed.events for row in event.rows if row[2] in ("pk", "parts")]
    assert len(ours) >= 8
    assert ours == printed


def test_all_rows_are_decoded(written: Written) -> None:
    assert not [placed.event.type_name for placed in written.events if placed.rows_error]
    (inserted,) = (
        placed.rows
        for placed in written.of_type("WRITE_ROWS_EVENT", "WRITE_ROWS_EVENT_V1")
        if placed.table == ("shop", "all_types")
    )
    assert inserted is not None
    values = list(inserted[0]["values"].values())
    assert values[:2] == [1, -1]
    assert "grün" in values


def test_truncation_anywhere(written: Written) -> None:
    """A cut event is an EventError, or reads as a shorter one; nothing else is ever raised."""
    raw = [data for _, data in read_events(written.path)]
    fmt = FormatDescription.parse(raw[0])
    kinds = {data[4]: data for data in raw if len(data) < 1000}
    assert len(kinds) > 12
    for data in kinds.values():
        content = data[: -fmt.checksum_length or None]
        for end in range(len(content)):
            for cut in (content[:end], resized(content[:end]) if end >= 19 else b""):
                with contextlib.suppress(EventError):
                    decode_event(cut, fmt.without_checksums())


def _printed(values: dict[str, Any]) -> dict[str, str]:
    shown = {}
    for number, value in enumerate(values.values(), 1):
        text = "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)
        shown[str(number)] = text
    return shown


def test_xa(written: Written) -> None:
    if written.flavor == "mysql-5.6":
        pytest.skip("MySQL 5.6 does not write prepared transactions")
    (prepare,) = (fields_of(placed.event) for placed in written.of_type("XA_PREPARE_LOG_EVENT"))
    assert (prepare.one_phase, prepare.format_id, prepare.gtrid, prepare.bqual) == (False, 7, b"gt", b"bq")


def test_partitions(written: Written) -> None:
    if written.flavor != "mysql-9.7":
        pytest.skip("only MySQL 8.0 and later write the partition")
    rows = [placed for placed in written.events if placed.table == ("shop", "parts")]
    partitions = [
        (fields_of(placed.event).partition, fields_of(placed.event).source_partition) for placed in rows
    ]
    assert partitions == [(1, None), (2, None), (3, 1)]
