"""The JSON of commits and summaries: the same bytes as ever, and fields of other versions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.binlog.position import SourcePosition
from engine.output.commit import Commit, DataFile, SchemaVersion, Summary
from engine.output.files import table_folder
from engine.output.log_json import Malformed

ENTRY = (
    b'{"version":7,"time_us":1700000000000007,"files":[{"path":"shop.orders/00000000000000000007-0.arrow",'
    b'"database":"shop","table":"orders","schema_version":2,"rows":10,"bytes":100,"first_seq":71,'
    b'"last_seq":80,"min_timestamp_us":1,"max_timestamp_us":2,"checksum":"00c0ffee00c0ffee"}],'
    b'"schemas":[{"database":"shop","table":"orders","schema_version":2,"arrow":"AP9zY2hlbWE="}],"position":{"file":"binlog.000001",'
    b'"position":4,"gtid_set":null,"server_uuid":"\xc3\x9c","flavor":"mysql","file_created":0},"last_seq":80,'
    b'"source_timestamp":1700000000,"counters":{"zero_dates":1},"format":1}'
)
SUMMARY = (
    b'{"schemas":[{"database":"shop","table":"orders","schema_version":2,"arrow":"AP9zY2hlbWE="}],'
    b'"tables":[{"database":"shop","table":"orders","files":1,"rows":10,"bytes":100}],'
    b'"counters":{"zero_dates":1},"format":1}'
)


def test_the_json_of_the_log_stays_as_it_is() -> None:
    """Older logs must stay readable, and new ones readable for older readers: byte for byte."""
    path = f"{table_folder('shop', 'orders')}/{7:020d}-0.arrow"
    entry = Commit(
        7,
        1_700_000_000_000_007,
        (DataFile(path, "shop", "orders", 2, 10, 100, 71, 80, 1, 2, "00c0ffee00c0ffee"),),
        (SchemaVersion("shop", "orders", 2, b"\x00\xffschema"),),
        SourcePosition("binlog.000001", 4, None, "Ü", "mysql"),
        80,
        1_700_000_000,
        {"zero_dates": 1},
    )
    summary = Summary()
    summary.add(entry)
    assert (entry.to_json(), summary.to_json()) == (ENTRY, SUMMARY)
    assert (Commit.from_json(ENTRY), Summary.from_json(SUMMARY)) == (entry, summary)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"last_seq":80,"source', b'"later":{"x":[1]},"last_seq":80,"source'),
        (b'"flavor"', b'"later":null,"flavor"'),
        (b',"file_created":0', b""),
    ],
    ids=["unknown in the commit", "unknown in the position", "one with a default is missing"],
)
def test_fields_of_other_versions(old: bytes, new: bytes) -> None:
    assert old in ENTRY
    assert Commit.from_json(ENTRY.replace(old, new)) == Commit.from_json(ENTRY)


def test_entries_from_before_there_were_checksums() -> None:
    older = Commit.from_json(ENTRY.replace(b',"checksum":"00c0ffee00c0ffee"', b""))
    assert older.files == (replace(Commit.from_json(ENTRY).files[0], checksum=None),)


def test_counters_are_not_optional() -> None:
    with pytest.raises(Malformed, match="missing required field `counters`"):
        Commit.from_json(ENTRY.replace(b'"counters"', b'"amounts"'))


def test_a_summary_of_another_format_is_refused() -> None:
    with pytest.raises(Malformed, match="format is 9"):
        Summary.from_json(Summary().to_json().replace(b'"format":1', b'"format":9'))
