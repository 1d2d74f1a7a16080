"""Which test shows which event and column type on which server: the source of `docs/coverage.md`.

Cells are not kept by hand. They follow from the lists that the tests themselves hold a server or a file to:
where a list says that a type is there, the test that compares the list with what was written is the cell.
`python -m tests.support.coverage` writes the document anew.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.binlog.event_types import EVENT_NAMES
from engine.binlog.field_types import FieldType as F
from tests import PROJECT
from tests.servers import FLAVORS
from tests.support import rare_workload, written_events
from tests.support.column_cases import CASES, Case
from tests.support.every_event import BODIES
from tests.support.suite_results import RESULTS

DOCUMENT = PROJECT / "docs" / "coverage.md"
DASH = "–"

TESTS = {
    "a": "test_every_event.py::test_each_type_is_shown",
    "E": "test_encrypted.py::test_the_server_sends_them_in_clear",
    "H": "test_events_historic_tools.py::test_events_are_those_that_the_tool_prints",
    "I": "test_events_historic.py::test_incident",
    "O": "test_events_dump.py::test_events_follow_each_other_to_the_end",
    "R": "test_events_rare.py::test_all_that_was_to_be_written_is_there",
    "W": "test_events_servers.py::test_every_kind_of_event_is_there",
    "X": "test_events_historic.py::test_damaged_files",
    "D": "test_differential.py::test_change_rows_are_what_select_gave",
    "K": "test_differential.py::test_columns_of_every_character_set",
    "M": "test_columns_servers.py::test_temporal_columns_as_old_mariadb_stored_them",
    "V": "test_events_historic_tools.py::test_row_values_are_those_that_the_tool_prints",
    "S": "test_row_shapes.py::test_partial_row_images",
    "G": "test_row_shapes.py::test_generated_and_invisible_columns",
    "B": "test_row_shapes.py::test_rows_of_several_megabytes",
    "C": "test_row_shapes.py::test_as_many_columns_as_a_table_can_have",
    "L": "test_large.py::test_large_values_and_transactions_arrive_whole",
    "P": "test_partial_updates.py::test_full_images_are_what_select_gives",
    "N": "test_row_images.py::test_partial_images",
    "Z": "test_impossible_dates.py::test_as_text_nothing_is_lost",
    "a1": "test_events.py::test_start_event_of_each_old_version",
    "a2": "test_events.py::test_unknown_types_pass_with_their_bytes",
    "a3": "test_events.py::test_slave",
    "a4": "test_events.py::test_incident",
    "a5": "test_events.py::test_heartbeats",
    "a6": "test_statement_events.py::test_load_with_delimiters_of_one_character",
    "a7": "test_statement_events.py::test_new_load",
    "a8": "test_statement_events.py::test_pieces_of_a_file",
    "a9": "test_transaction_events.py::test_group_replication",
    "b1": "test_events.py::test_mariadb_encryption_and_row_pieces",
    "b2": "test_events.py::test_extra_row_info",
    "b3": "test_expand.py::test_mariadb_compressed_rows_are_the_plain_ones",
    "b4": "test_walk.py::test_rows_of_before_mysql_5_1_18_are_refused",
    "b5": "test_transaction_events.py::test_compressed_transactions",
    "b6": "test_query_status.py::test_each_variable",
    "b7": "test_statement_events.py::test_user_variables",
    "b8": "test_transaction_events.py::test_tagged_gtid",
    "b9": "test_transaction_events.py::test_mariadb_gtid_with_everything",
    "i": "test_columns_integers.py::test_integers_of_every_width_and_sign",
    "f": "test_columns_integers.py::test_floats",
    "b": "test_columns_integers.py::test_bits",
    "y": "test_columns_integers.py::test_years",
    "d": "test_columns_decimals.py::test_decimals_of_every_precision",
    "o": "test_values_beyond.py::test_columns_of_unknown_size",
    "t": "test_columns_temporal.py::test_dates",
    "t2": "test_columns_temporal.py::test_datetimes",
    "t3": "test_columns_temporal.py::test_timestamps",
    "t4": "test_columns_temporal.py::test_times",
    "t5": "test_columns_temporal.py::test_old_datetimes",
    "t6": "test_columns_temporal.py::test_old_times",
    "t7": "test_columns_temporal.py::test_datetimes_of_old_mariadb",
    "t8": "test_columns_temporal.py::test_timestamps_of_old_mariadb",
    "t9": "test_columns_temporal.py::test_times_of_old_mariadb",
    "z": "test_columns_temporal.py::test_impossible_dates_of_every_type",
    "s": "test_columns_strings.py::test_length_prefixes",
    "s2": "test_columns_strings.py::test_utf8_text",
    "s3": "test_columns_strings.py::test_bytes",
    "s4": "test_columns_strings.py::test_fixed_length_bytes_are_padded",
    "e": "test_columns_strings.py::test_enums",
    "e2": "test_columns_strings.py::test_sets",
    "c": "test_columns_charsets.py::test_texts_of_all_characters",
    "j": "test_columns_json.py::test_documents",
    "j2": "test_columns_json.py::test_values_of_sql_types",
    "j3": "test_json_diffs.py::test_any_change_of_any_document_is_what_python_does",
    "g": "test_columns_spatial.py::test_geometries",
    "v": "test_columns_spatial.py::test_vectors",
    "m": "test_columns_mariadb.py::test_uuids",
    "m2": "test_columns_mariadb.py::test_inet4",
    "m3": "test_columns_mariadb.py::test_inet6_texts_are_the_address",
    "m4": "test_columns_mariadb.py::test_compressed_columns",
    "w": "test_walk.py::test_partial_images",
    "w2": "test_walk.py::test_column_counts",
}
"""Key → test, in `tests/`. Capitals: written by a server; small letters: bytes made after the sources."""

HISTORIC_EVENTS: Mapping[str, Sequence[str]] = {
    "MySQL 4": (
        *("START_EVENT_V3", "QUERY_EVENT", "STOP_EVENT", "ROTATE_EVENT", "INTVAR_EVENT", "RAND_EVENT"),
        *("USER_VAR_EVENT", "CREATE_FILE_EVENT", "APPEND_BLOCK_EVENT", "EXEC_LOAD_EVENT"),
    ),
    "MySQL 5.0": (
        *("FORMAT_DESCRIPTION_EVENT", "QUERY_EVENT", "STOP_EVENT", "ROTATE_EVENT", "INTVAR_EVENT"),
        "XID_EVENT",
    ),
    "MySQL 5.1": (
        *("FORMAT_DESCRIPTION_EVENT", "QUERY_EVENT", "STOP_EVENT", "ROTATE_EVENT", "INTVAR_EVENT"),
        *("RAND_EVENT", "USER_VAR_EVENT", "XID_EVENT", "BEGIN_LOAD_QUERY_EVENT", "APPEND_BLOCK_EVENT"),
        *("EXECUTE_LOAD_QUERY_EVENT", "TABLE_MAP_EVENT", "PRE_GA_WRITE_ROWS_EVENT"),
        *("PRE_GA_UPDATE_ROWS_EVENT", "PRE_GA_DELETE_ROWS_EVENT", "WRITE_ROWS_EVENT_V1"),
        *("UPDATE_ROWS_EVENT_V1", "DELETE_ROWS_EVENT_V1", "INCIDENT_EVENT"),
    ),
    "MySQL 5.7": (
        *("FORMAT_DESCRIPTION_EVENT", "QUERY_EVENT", "STOP_EVENT", "INTVAR_EVENT", "XID_EVENT"),
        *("ANONYMOUS_GTID_LOG_EVENT", "PREVIOUS_GTIDS_LOG_EVENT"),
    ),
    "MySQL 8.0": (
        *("FORMAT_DESCRIPTION_EVENT", "QUERY_EVENT", "STOP_EVENT", "ROTATE_EVENT", "INTVAR_EVENT"),
        *("XID_EVENT", "TABLE_MAP_EVENT", "WRITE_ROWS_EVENT", "ANONYMOUS_GTID_LOG_EVENT"),
        *("PREVIOUS_GTIDS_LOG_EVENT", "PARTIAL_UPDATE_ROWS_EVENT", "TRANSACTION_PAYLOAD_EVENT"),
    ),
    "MariaDB 5.5": ("FORMAT_DESCRIPTION_EVENT", "QUERY_EVENT", "STOP_EVENT", "XID_EVENT"),
    "MariaDB 10.0–10.6": (
        *("FORMAT_DESCRIPTION_EVENT", "QUERY_EVENT", "STOP_EVENT", "XID_EVENT", "TABLE_MAP_EVENT"),
        *("WRITE_ROWS_EVENT_V1", "UPDATE_ROWS_EVENT_V1", "DELETE_ROWS_EVENT_V1", "ANNOTATE_ROWS_EVENT"),
        *("BINLOG_CHECKPOINT_EVENT", "GTID_EVENT", "GTID_LIST_EVENT", "START_ENCRYPTION_EVENT"),
    ),
}
"""What the files of the test data have; `test_coverage` compares."""
HISTORIC_FORMS: Mapping[str, Sequence[str]] = {
    "MySQL 5.1": ("INT", "BIGINT", "CHAR", "VARCHAR"),
    "MySQL 5.7": (),
    "MySQL 8.0": ("INT", "VARCHAR", "JSON of MySQL", "JSON differences"),
    "MariaDB 10.0–10.6": ("TINYINT", "INT", "BIGINT", "CHAR"),
}
DUMPED = "MySQL 8.0"
DUMPED_EVENTS = (
    *("FORMAT_DESCRIPTION_EVENT", "PREVIOUS_GTIDS_LOG_EVENT", "GTID_LOG_EVENT", "QUERY_EVENT"),
    *("TABLE_MAP_EVENT", "WRITE_ROWS_EVENT", "XID_EVENT"),
)
"""What the file has of which its author left a hex dump with comments."""
MADE: Mapping[str, Sequence[str]] = {
    "a1": ("START_EVENT_V3",),
    "a2": ("UNKNOWN_EVENT", "IGNORABLE_LOG_EVENT"),
    "a3": ("SLAVE_EVENT",),
    "a4": ("INCIDENT_EVENT",),
    "a5": ("HEARTBEAT_LOG_EVENT", "HEARTBEAT_LOG_EVENT_V2"),
    "a6": ("LOAD_EVENT",),
    "a7": ("NEW_LOAD_EVENT", "CREATE_FILE_EVENT"),
    "a8": ("APPEND_BLOCK_EVENT", "EXEC_LOAD_EVENT", "DELETE_FILE_EVENT"),
    "a9": ("TRANSACTION_CONTEXT_EVENT", "VIEW_CHANGE_EVENT"),
    "b1": ("START_ENCRYPTION_EVENT", "PARTIAL_ROW_DATA_EVENT"),
    "b2": ("WRITE_ROWS_EVENT", "UPDATE_ROWS_EVENT"),
    "b3": [name for name in EVENT_NAMES.values() if "ROWS_COMPRESSED" in name],
    "b4": ("PRE_GA_WRITE_ROWS_EVENT", "PRE_GA_UPDATE_ROWS_EVENT", "PRE_GA_DELETE_ROWS_EVENT"),
    "b5": ("TRANSACTION_PAYLOAD_EVENT",),
    "b6": ("QUERY_EVENT",),
    "b7": ("USER_VAR_EVENT",),
    "b8": ("GTID_TAGGED_LOG_EVENT",),
    "b9": ("GTID_EVENT",),
}
"""Tests of bytes that say more than that the type is known."""
NO_TOOL = {("INCIDENT_EVENT", "MySQL 5.1"): "I", ("START_ENCRYPTION_EVENT", "MariaDB 10.0–10.6"): "X"}
"""Historic events that today's tools refuse."""

NAMES = {
    "mysql-5.6": "MySQL 5.6",
    "mysql-5.7": "MySQL 5.7",
    "mysql-8.0": "MySQL 8.0",
    "mysql-9.7": "MySQL 9.7",
    "mariadb-10.11": "MariaDB 10.11",
    "mariadb-11.8": "MariaDB 11.8",
}
COLUMNS = (
    *("MySQL 4", "MySQL 5.0", "MySQL 5.1", "MySQL 5.6", "MySQL 5.7", "MySQL 8.0", "MySQL 9.7"),
    *("MariaDB 5.5", "MariaDB 10.0–10.6", "MariaDB 10.11", "MariaDB 11.8", "bytes"),
)
ENCRYPTED = {flavor: ("START_ENCRYPTION_EVENT",) if "mariadb" in flavor else () for flavor in FLAVORS}

Row = Mapping[str, str]
"""Column of the table → keys of tests."""


def event_rows() -> dict[str, Row]:
    """Event type → its cells."""
    return {name: _event_row(code, name) for code, name in EVENT_NAMES.items()}


def _event_row(code: int, name: str) -> Row:
    cells = dict.fromkeys(COLUMNS, DASH)
    for column, names in HISTORIC_EVENTS.items():
        if name in names:
            cells[column] = NO_TOOL.get((name, column), "H")
    if name in DUMPED_EVENTS:
        cells[DUMPED] = _with(cells[DUMPED], "O")
    for flavor in FLAVORS:
        written: dict[str, Mapping[str, Collection[str]]] = {
            "W": written_events.WRITTEN,
            "R": rare_workload.WRITTEN,
            "E": ENCRYPTED,
        }
        keys = [key for key, names in written.items() if name in names[flavor]]
        cells[NAMES[flavor]] = _with(cells[NAMES[flavor]], *keys)
    made = [key for key, names in MADE.items() if name in names]
    return cells | {"bytes": " ".join(["a"] * (code in BODIES) + made) or DASH}


def _with(cell: str, *keys: str) -> str:
    """A cell with more keys."""
    return " ".join([cell, *keys]).removeprefix(f"{DASH} ")


@dataclass(frozen=True)
class Form:
    """A column type in one of the forms in which it is stored."""

    name: str
    code: F | None
    """What table maps call it; None for what concerns all types."""
    made: str
    """Tests of bytes."""
    declared: str = ""
    """What the differential test declares, as a regular expression."""
    flavor: str = ""
    """The part of the names of the servers whose declaration that is."""
    also: Mapping[str, str] = field(default_factory=dict)
    """Part of the servers' names → further tests."""

    def is_of(self, case: Case, flavor: str) -> bool:
        """Whether the differential test's column is of this form, and on that server."""
        return (
            case.is_on(flavor) and self.flavor in flavor and bool(re.fullmatch(self.declared, case.declared))
        )

    def cells(self) -> Row:
        """The form's row."""
        cells = dict.fromkeys(COLUMNS, DASH)
        cells |= {column: "V" for column, forms in HISTORIC_FORMS.items() if self.name in forms}
        for flavor in FLAVORS:
            keys = ["D"] * any(self.is_of(case, flavor) for case in CASES)
            keys += [key for part, key in self.also.items() if part in flavor]
            cells[NAMES[flavor]] = _with(cells[NAMES[flavor]], *keys)
        cells["bytes"] = self.made or DASH
        return cells


def _integers() -> Iterable[Form]:
    names = ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT")
    for name, code in zip(names, (F.TINY, F.SHORT, F.INT24, F.LONG, F.LONGLONG), strict=True):
        yield Form(name, code, "i", name)
        yield Form(f"{name} UNSIGNED", code, "i", f"{name} UNSIGNED")


_OLD = {"mariadb": "M"}
FORMS = (
    *_integers(),
    Form("FLOAT", F.FLOAT, "f", "FLOAT"),
    Form("DOUBLE", F.DOUBLE, "f", "DOUBLE"),
    Form("DECIMAL", F.NEWDECIMAL, "d", r"DECIMAL\(.*"),
    Form("DECIMAL before MySQL 5.0, refused", F.DECIMAL, "o"),
    Form("NULL, refused", F.NULL, "o"),
    Form("BIT", F.BIT, "b", r"BIT\(.*"),
    Form("YEAR", F.YEAR, "y", "YEAR"),
    Form("DATE", F.DATE, "t", "DATE"),
    Form("DATE as NEWDATE", F.NEWDATE, "t"),
    Form("DATETIME(0–6)", F.DATETIME2, "t2", r"DATETIME.*"),
    Form("DATETIME before MySQL 5.6, MariaDB 10.1", F.DATETIME, "t5 t7", also=_OLD),
    Form("TIMESTAMP(0–6)", F.TIMESTAMP2, "t3", r"TIMESTAMP.*"),
    Form("TIMESTAMP before MySQL 5.6, MariaDB 10.1", F.TIMESTAMP, "t3 t8", also=_OLD),
    Form("TIME(0–6), negative ones too", F.TIME2, "t4", r"TIME(\(.*)?"),
    Form("TIME before MySQL 5.6, MariaDB 10.1", F.TIME, "t6 t9", also=_OLD),
    Form("zero and partial dates", None, "z", also={"": "Z"}),
    Form("CHAR", F.STRING, "s s2", r"CHAR\((60|20)\).*"),
    Form("CHAR of more than 255 bytes", F.STRING, "s", r"CHAR\(2.5\).*|CHAR\(200\).*"),
    Form("BINARY", F.STRING, "s4", r"BINARY\(.*"),
    Form("VARCHAR", F.VARCHAR, "s s2", r"VARCHAR\(\d+\)( CHARACTER.*)?"),
    Form("VARBINARY", F.VARCHAR, "s3", r"VARBINARY\(\d+\)"),
    Form("VAR_STRING", F.VAR_STRING, "s"),
    Form("TINYBLOB, TINYTEXT", F.BLOB, "s", "TINYBLOB|TINYTEXT"),
    Form("BLOB, TEXT", F.BLOB, "s s2 s3", "BLOB|TEXT CHARACTER.*"),
    Form("MEDIUMBLOB, MEDIUMTEXT", F.BLOB, "s", "MEDIUMBLOB|MEDIUMTEXT"),
    Form("LONGBLOB, LONGTEXT", F.BLOB, "s", "LONGBLOB|LONGTEXT CHARACTER.*"),
    Form("TINYBLOB with its own type code", F.TINY_BLOB, "s"),
    Form("MEDIUMBLOB with its own type code", F.MEDIUM_BLOB, "s"),
    Form("LONGBLOB with its own type code", F.LONG_BLOB, "s"),
    Form("every character set of the server", None, "c", also={"": "K"}),
    Form("ENUM of 1 byte", F.ENUM, "e", "ENUM\\('[aq]'.*"),
    Form("ENUM of 2 bytes", F.ENUM, "e", "ENUM\\('m0'.*"),
    Form("SET of 1, 2, 3, 4 and 8 bytes", F.SET, "e2", r"SET\(.*"),
    Form("GEOMETRY and its kinds", F.GEOMETRY, "g", "GEOMETRY.*|POINT|LINESTRING|POLYGON|MULTI.*"),
    Form("JSON of MySQL", F.JSON, "j j2", "JSON", "mysql"),
    Form("JSON differences", F.JSON, "j3", also={"mysql-9": "P", "mysql-8": "P"}),
    Form("JSON of MariaDB", F.BLOB, "s2", "JSON", "mariadb"),
    Form("VECTOR of MySQL", F.VECTOR, "v", r"VECTOR\(.*", "mysql"),
    Form("VECTOR of MariaDB", F.VARCHAR, "v", r"VECTOR\(.*", "mariadb"),
    Form("UUID", F.STRING, "m", "UUID"),
    Form("INET4", F.STRING, "m2", "INET4"),
    Form("INET6", F.STRING, "m3", "INET6"),
    Form("BLOB and TEXT COMPRESSED", F.BLOB_COMPRESSED, "m4", r"\w+ COMPRESSED.*"),
    Form("VARCHAR and VARBINARY COMPRESSED", F.VARCHAR_COMPRESSED, "m4", r"VAR\w+\(\d+\) COMPRESSED"),
    Form("row images FULL, MINIMAL, NOBLOB", None, "w", also={"": "S"}),
    Form("row images FULL_NODUP", None, "w", also={"mariadb-11": "N"}),
    Form(
        *("generated and invisible columns", None, ""),
        also=dict.fromkeys(("mysql-9", "mysql-8", "mysql-5.7", "mariadb"), "G"),
    ),
    Form("as many columns as a table can have", None, "w2", also={"": "C"}),
    Form("rows of several MB", None, "", also={"": "B", "mysql-9": "L", "mariadb-11": "L"}),
)
"""Every type code, and every declaration of the differential test."""

FUZZING = (
    "`make fuzz`, with every memory access checked, on 2026-11-20:",
    "",
    "| run | inputs | refused | seconds | findings | result |",
    "| --- | --: | --: | --: | --- | --- |",
    "| at random, 1st | not counted | | ends at a finding | an `IndexError` in the batcher: after a gap that "
    "no header contains, a transaction of several batches used the gap's row as its GTID | fixed; "
    "`test_batching.py::test_a_transaction_after_a_gap_that_its_gtid_does_not_show` |",
    "| at random, 2nd, same seed | 8,500 | 3,149 | 150 | none | |",
    "| coverage-guided, 1st | not counted | | ends at a finding | it kept a binlog with only a format "
    "description, in which there was nothing to damage | fixed in `guided.py` |",
    "| coverage-guided, 2nd, same seed | 36,353 | 19,440 | 150 | none; 463 kept, 2,764 pairs of lines, "
    "370 kinds of errors | |",
    "| at random, 3rd, `FUZZ_SEED=7` | 31,000 | 11,187 | 90 | none | |",
    "| coverage-guided, 3rd, the same run | 25,515 | 12,966 | 90 | none; 309 kept, 2,765 pairs of lines, "
    "216 kinds of errors | |",
)


def column_rows() -> dict[str, Row]:
    """Column type → its cells."""
    return {form.name: form.cells() for form in FORMS}


def _table(head: str, rows: Mapping[str, Row]) -> Iterable[str]:
    yield f"| {head} | {' | '.join(COLUMNS)} |"
    yield "| --- |" + " :-: |" * len(COLUMNS)
    for name, cells in rows.items():
        yield f"| {name} | {' | '.join(cells[column] for column in COLUMNS)} |"


INTRODUCTION = """\
# Coverage: which test covers which event and column type

`python -m tests.support.coverage` generates this page from the lists of expected contents that the tests
check. Each cell contains keys of tests, which are listed below. Capital letters: a server wrote the event or
value, and the engine's result equals that of its `SELECT` or of a current `mysqlbinlog`. Small letters, in
the column *bytes*: the test builds the bytes according to the servers' sources. A dash: the server cannot
write it, or, for old servers, none of the available files contains it.

The files of MySQL 4 to 8.0 and MariaDB 5.5 to 10.6 are those of MariaDB's own test suite. A group of MySQL
9.7 no longer writes VIEW_CHANGE and TRANSACTION_CONTEXT events (`test_group_replication.py`).
"""


def document() -> str:
    """The text of `docs/coverage.md`."""
    lines = [INTRODUCTION, "## Event types", "", *_table("event", event_rows()), ""]
    lines += ["## Column types", "", *_table("column", column_rows()), ""]
    lines += ["## Tests", "", "| key | test |", "| --- | --- |"]
    lines += [f"| {key} | `{test}` |" for key, test in TESTS.items()]
    lines += ["", "## Fuzzing", "", *FUZZING]
    lines += ["", "## The servers' own test suites", "", *RESULTS]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(document())
