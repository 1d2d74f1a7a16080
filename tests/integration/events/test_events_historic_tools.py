"""`events --json` on binlogs of servers of the past, against the bytes of their headers and today's tools.

Between them, the `mariadb-binlog` of 10.11, the last one that reads binlogs of MySQL 4, and the `mysqlbinlog`
of 9.7 read all of these files but those in `UNREADABLE`.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.binlog.event_types import EVENT_NAMES, ROWS_EVENTS
from engine.commands.events import show_events
from engine.config.decode_options import DecodeOptions
from engine.errors import BinlogError
from tests.servers import UnavailableError
from tests.servers.installations import installation
from tests.support.batches import decode_all, events_of, feed
from tests.support.historic_events import UNREADABLE, headers
from tests.support.mysqlbinlog import print_binlog
from tests.support.printed_values import as_printed, printed_rows
from tests.support.shown_rows import shown_rows
from tests.support.transaction_pictures import batcher
from tests.support.written_events import LABELS as TODAYS_LABELS

VALUES = {
    # Those that every release must go on reading…
    "binlog_old_version_4_1.000001": 0,
    "ver_5_1_17.001": 0,
    "ver_trunk_row_v2.001": 14,
    "bug32407.001": 0,
    "bug40482-bin.000001": 0,
    "trunc_binlog.000001": 0,
    "mariadb-5.5-binlog.000001": 0,
    # … and the other files of the test data.
    "binlog-header.binlog": 0,
    "binlog_before_20574.bin": 0,
    "binlog_savepoint.000001": 0,
    "binlog_transaction.000001": 0,
    "bug11747416_32228_binlog.000001": 0,
    "bug16266.000001": 0,
    "bug33029-slave-relay-bin.000001": 0,
    "bug47142_master-bin.000001": 0,
    "corrupt-relay-bin.000624": 0,
    "master-bin-seq_10.3.36.000001": 16,
    "master-bin.000001": 0,
    "mdev-39404-binlog.000001": 0,
    "mdev-4645-binlog_checksum.binlog": 0,
    "mdev-4645-binlog_group_id.binlog": 0,
    "mdev-4645-binlog_group_id_checksum.binlog": 0,
    "mdev-4645-binlog_none.binlog": 0,
    "mdev29078-mysql-bin.000001": 0,
    "mdev35643_mysql_80_binlog.000001": 319,
    "mdev6020-mysql-bin.000001": 59960,
    "mysql-5.7.11-stm-temporal-round-binlog.000001": 0,
    "mysql-8.0.13-stm-temporal-round-binlog.000001": 0,
    "update-full-row.binlog": 24,
    "update-partial-row.binlog": 22,
    "ver_5_1-telco.001": 0,
    "ver_5_1_23.001": 14,
    "write-full-row.binlog": 21,
    "write-partial-row.binlog": 20,
}
"""Every file, with how many values of rows there are to compare."""
RELAYED = (
    "binlog_savepoint.000001",
    "bug33029-slave-relay-bin.000001",
    "ver_5_1-telco.001",
    "ver_5_1_17.001",
)
"""Their headers contain positions in the source's files, and so does the tool's output."""
OF_MYSQL_8 = (
    "mdev35643_mysql_80_binlog.000001",
    "mysql-5.7.11-stm-temporal-round-binlog.000001",
    "mysql-8.0.13-stm-temporal-round-binlog.000001",
)
"""What MySQL's tool knows more of than MariaDB's."""
LABELS = TODAYS_LABELS | {
    "START_EVENT_V3": "Start: binlog",
    "STOP_EVENT": "Stop",
    "ANNOTATE_ROWS_EVENT": "Annotate_rows",
    "APPEND_BLOCK_EVENT": "",
    "EXEC_LOAD_EVENT": "",
    "CREATE_FILE_EVENT": "Query",
    "PRE_GA_WRITE_ROWS_EVENT": "Write_rows_old",
    "PRE_GA_UPDATE_ROWS_EVENT": "Update_rows_old",
    "PRE_GA_DELETE_ROWS_EVENT": "Delete_rows_old",
}
REPLACED = re.compile(r"JSON_REPLACE\(@\d+, '\$\.(\w+)', '(\w+)'\)")
FILE_PIECES = {
    "CREATE_FILE_EVENT": "# file_id: {} block_len: {}",
    "BEGIN_LOAD_QUERY_EVENT": "#Begin_load_query: file_id: {} block_len: {}",
    "APPEND_BLOCK_EVENT": "#Append_block: file_id: {} block_len: {}",
}


@cache
def shown(path: Path) -> tuple[list[dict[str, Any]], BinlogError | None]:
    """The objects that `events --json` prints, and the error that it ends with."""
    output = io.StringIO()
    error = None
    try:
        show_events([path], as_json=True, output=output)
    except BinlogError as caught:
        error = caught
    return [json.loads(line) for line in output.getvalue().splitlines()], error


def test_every_file_is_tried(historic: dict[str, Path]) -> None:
    assert set(VALUES) == set(historic)


every_file = pytest.mark.parametrize("name", VALUES)


@every_file
def test_positions_types_and_sizes_are_those_of_the_file(historic: dict[str, Path], name: str) -> None:
    events, error = shown(historic[name])
    outer = [event for event in events if not event.get("in_payload")]
    keys = ("pos", "end_pos", "size", "timestamp", "type_code", "server_id", "flags")
    ours = [tuple(event[key] for key in keys) for event in outer]
    theirs = headers(historic[name].read_bytes())
    assert ours == theirs[: len(ours)]
    if error is None:
        assert (len(ours), outer[-1]["end_pos"]) == (len(theirs), historic[name].stat().st_size)
    else:
        assert name in UNREADABLE
        assert error.position in (outer[-1]["pos"], outer[-1]["end_pos"])
    assert all(EVENT_NAMES[event["type_code"]] == event["type"] for event in events)


def tool_for(name: str) -> list[str]:
    """The tool that reads the file."""
    if name in UNREADABLE:
        pytest.skip(f"no tool reads it: {UNREADABLE[name]}")
    try:
        return installation("mysql-9.7" if name in OF_MYSQL_8 else "mariadb-10.11").tool("mysqlbinlog")
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.server
@every_file
def test_events_are_those_that_the_tool_prints(historic: dict[str, Path], name: str) -> None:
    printout = print_binlog(tool_for(name), historic[name])
    events, error = shown(historic[name])
    assert error is None
    places = [event["end_pos"] if event.get("in_payload") else event["pos"] for event in events]
    assert places == printout.positions
    # A CREATE_FILE event is printed twice: at its place, and as a statement when the file is complete.
    printed = [event for event in printout.events if not any("LOCAL" in line for line in event.lines[:1])]
    assert len(events) == len(printed)
    old = events[0]["data"]["binlog_version"] < 4
    for event, printed_event in zip(events, printed, strict=True):
        assert printed_event.label.lstrip().startswith(LABELS[event["type"]]), event
        assert (event["timestamp"], event["server_id"]) == (printed_event.timestamp, printed_event.server_id)
        if not old and name not in RELAYED:
            assert printed_event.end_position in (event["end_pos"], 0)
        if piece := FILE_PIECES.get(event["type"]):
            words = " ".join(" ".join(printed_event.lines).split())
            size = len(bytes.fromhex(event["data"]["block"]))
            assert piece.format(event["data"]["file_id"], size) in words
        statement = event["data"].get("statement", "")
        if "LOAD DATA" not in statement:
            assert all(line in printout.text for line in statement.splitlines())


@pytest.mark.server
@every_file
def test_row_values_are_those_that_the_tool_prints(historic: dict[str, Path], name: str) -> None:
    tool = tool_for(name)
    printed = printed_rows(tool, historic[name])
    ours = list(shown_rows(historic[name], {}))
    assert [row[0] for row in ours] == [row.table for row in printed]
    compared = 0
    for (_, _, values, columns), row in zip(ours, printed, strict=True):
        carried = [number for number, column in enumerate(columns, 1) if column.name in values]
        assert sorted(row.values) == carried
        for number, (text, printed_type) in row.values.items():
            column = columns[number - 1]
            value = as_printed(values[column.name], column, printed_type, "mariadb" in tool[-1])
            compared += value is not None
            if difference := REPLACED.fullmatch(text):
                # The tool prints what was changed, we apply it.
                value = json.dumps(json.loads(values[column.name])[difference[1]])
                text = json.dumps(difference[2])
            assert value in (None, text)
    assert compared == VALUES[name]


NOT_FOR_THE_PIPELINE = {
    "bug32407.001": "rows events of MySQL before 5.1.18",
    "ver_5_1-telco.001": "rows events of MySQL before 5.1.18",
    "ver_5_1_17.001": "rows events of MySQL before 5.1.18",
    "mdev-4645-binlog_checksum.binlog": "headers of 23 bytes",
    "mdev-4645-binlog_group_id.binlog": "headers of 27 bytes",
    "mdev-4645-binlog_group_id_checksum.binlog": "headers of 31 bytes",
}
ONLY_SHOWN = {EVENT_NAMES[code] for code in ROWS_EVENTS} | {
    *("FORMAT_DESCRIPTION_EVENT", "START_EVENT_V3", "TRANSACTION_PAYLOAD_EVENT"),
}
"""Types that begin files, types that are replaced by their content, and types that are rows."""


@every_file
def test_all_of_it_comes_out_of_the_pipeline(historic: dict[str, Path], name: str) -> None:
    if name in UNREADABLE:
        pytest.skip(UNREADABLE[name])
    stream = b"".join(events_of(historic[name]))
    options = DecodeOptions(bookkeeping_events=True)
    try:
        decoded = decode_all(list(feed(batcher(marker=None), stream, [])), options)
        error = decoded.error
    except BinlogError as refused:
        error = str(refused)
    if name in NOT_FOR_THE_PIPELINE or error is not None:
        assert NOT_FOR_THE_PIPELINE[name] in (error or "")
        return
    events, _ = shown(historic[name])
    if name == "trunc_binlog.000001":
        # It ends inside a transaction, which is left out.
        events = []
    if name in RELAYED:
        events = [event for event in events if event["type"] != "ROTATE_EVENT"]
    entries = Counter(row["type"] for row in decoded.rows.pop("", []))
    assert entries == Counter(event["type"] for event in events if event["type"] not in ONLY_SHOWN)
    rows = sum(len(event["data"].get("rows") or ()) for event in events)
    assert sum(map(len, decoded.rows.values())) == rows
