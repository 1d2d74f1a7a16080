"""Commits whose content follows from their number, written to a log and compared with what it gives."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from engine.binlog.position import SourcePosition
from engine.output import log_files
from engine.output.commit import Commit, DataFile, SchemaVersion
from engine.output.commit_log import CommitLog
from engine.output.schema_state import LoggedChange
from tests.support.schema_changes import ORDERS, defined, learned

SCHEMAS = [pa.schema([(f"column{n}", pa.int32())]) for n in range(1, 4)]


def commit(version: int) -> Commit:
    """A commit of one file; every fourth one changes the schema, every third one the table's definition."""
    schema_version = version // 4 + 1
    arrow = SCHEMAS[schema_version % 3].serialize().to_pybytes()
    file = DataFile(
        f"shop.orders/{version:020d}-0.arrow",
        "shop",
        "orders",
        schema_version,
        rows=10,
        bytes=100,
        first_seq=version * 10 + 1,
        last_seq=version * 10 + 10,
        min_timestamp_us=1,
        max_timestamp_us=2,
    )
    return Commit(
        version,
        1_700_000_000_000_000 + version,
        (file,),
        (SchemaVersion("shop", "orders", schema_version, arrow),) if version % 4 == 0 else (),
        SourcePosition("binlog.000001", 4 + version, None, "uuid", "mysql"),
        version * 10 + 10,
        1_700_000_000,
        {"zero_dates": 1},
        (LoggedChange(version * 10, learned(defined(ORDERS, version // 3 + 1, "id"))),)
        if version % 3 == 0
        else (),
    )


def fill(log: CommitLog, last: int) -> None:
    for version in range(log.latest_version() + 1, last + 1):
        log.append(commit(version))
        if (version + 1) % log_files.COMMITS_PER_SEGMENT == 0:
            log.consolidate()


def check(out: Path, last: int) -> None:
    """A fresh reader sees exactly the commits 0 to `last`."""
    log = CommitLog(out)
    assert log.latest_version() == last
    assert list(log.range(0, last)) == [commit(version) for version in range(last + 1)]
    for version in range(last + 1):
        assert CommitLog(out).read(version) == commit(version)
        assert set(log.schemas_at(version)) == {("shop", "orders", n) for n in range(1, version // 4 + 2)}
        assert CommitLog(out).summary_at(version) == log.summary_at(version)
    if last >= 0:
        summary = log.summary_at(last)
        assert summary.totals["shop", "orders"].rows == 10 * (last + 1)
        assert summary.counters == {"zero_dates": last + 1}
        (definition,) = log.schema_state_at(last).changes()
        assert definition.change.tables == (defined(ORDERS, last // 3 + 1, "id"),)


def entry_path(out: Path, version: int) -> Path:
    return out / "_log" / f"{version:020d}.json"
