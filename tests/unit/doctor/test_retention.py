"""What the doctor says of a server's binlogs, from their sizes and ages."""

from __future__ import annotations

import time

import pytest

from engine.doctor.finding import Finding
from engine.doctor.retention import check_retention, retention_seconds

DAY = 86_400
FILES = (("binlog.000001", 600_000_000), ("binlog.000002", 400_000_000))


def findings(variables: dict[str, str], age: float) -> dict[str, Finding]:
    found = check_retention(variables, FILES, lambda file: int(time.time() - age))
    return {finding.what: finding for finding in found}


@pytest.mark.parametrize(
    "variables,seconds",
    [
        ({"binlog_expire_logs_seconds": "2592000", "expire_logs_days": "0"}, 30 * DAY),
        ({"binlog_expire_logs_seconds": "0", "expire_logs_days": "2.5"}, 2.5 * DAY),
        ({"expire_logs_days": "0"}, float("inf")),
        ({"binlog_expire_logs_seconds": "60", "binlog_expire_logs_auto_purge": "OFF"}, float("inf")),
    ],
)
def test_retention(variables: dict[str, str], seconds: float) -> None:
    assert retention_seconds(variables) == seconds


def test_the_disk_that_the_retention_needs() -> None:
    disk = findings({"binlog_expire_logs_seconds": str(30 * DAY)}, 2 * DAY)["binlogs on the server's disk"]
    assert disk.level == "ok"
    assert disk.actual == "1.0 GB in 2 files, written in 2.0 days, 15.0 GB after 30.0 days at this rate"


def test_binlogs_that_are_never_purged() -> None:
    found = findings({"expire_logs_days": "0"}, 2 * DAY)
    assert found["retention of binlogs"].level == "ok"
    disk = found["binlogs on the server's disk"]
    assert (disk.level, disk.remedy) == ("advice", "SET GLOBAL expire_logs_days = 14")
    assert "500.0 MB a day" in disk.why


def test_a_limit_of_bytes_purges_earlier() -> None:
    variables = {"binlog_expire_logs_seconds": str(30 * DAY), "max_binlog_total_size": "500000000"}
    disk = findings(variables, 2 * DAY)["binlogs on the server's disk"]
    assert disk.level == "advice"
    assert "500.0 MB are kept: 24.0 hours" in disk.actual


def test_the_rate_of_a_short_time_says_nothing() -> None:
    disk = findings({"expire_logs_days": "14"}, 600)["binlogs on the server's disk"]
    assert disk.actual == "1.0 GB in 2 files, written in 10.0 minutes"
