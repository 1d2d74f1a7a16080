"""Which changes a selection wants."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from engine.binlog.position import BinlogPosition
from engine.config.table_filter import TableFilter
from engine.errors import EngineError
from engine.sql.selection import GtidChoice, Place, Selection, parse_bound

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def place(position: int, second: int = 0, gtid: str | None = None) -> Place:
    return Place(
        BinlogPosition("binlog.000002", position), datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC), gtid
    )


def test_positions() -> None:
    selection = Selection(
        since=parse_bound("binlog.000002:100", "--since"), until=parse_bound("binlog.000010:4", "--until")
    )
    assert [selection.wants(place(at)) for at in (99, 100, 5000)] == [False, True, True]
    selection = Selection(until=BinlogPosition("binlog.000002", 100))
    assert [selection.wants(place(at)) for at in (99, 100)] == [True, False]


def test_times() -> None:
    selection = Selection(since=parse_bound("2026-01-01T01:00:01+01:00", "--since"))
    assert [selection.wants(place(4, second)) for second in (0, 1)] == [False, True]
    assert not selection.may_want_between(place(4, 0).time, place(4, 0).time)
    assert selection.may_want_between(place(4, 0).time, place(4, 1).time)


@pytest.mark.parametrize("text", ["2026-01-01", "binlog.000001", "2026-13-01T00:00:00Z", ":4"])
def test_bounds_that_are_not_valid(text: str) -> None:
    with pytest.raises(EngineError, match="--until"):
        parse_bound(text, "--until")


@pytest.mark.parametrize(
    "flavor,text,wanted,unwanted",
    [
        ("mysql", f"{UUID}:3-4", f"{UUID}:4", f"{UUID}:5"),
        ("mysql", f"{UUID}:blue:3", f"{UUID}:blue:3", f"{UUID}:3"),
        ("mariadb", "0-1-7, 0-1-9", "0-1-9", "0-1-8"),
    ],
)
def test_gtids(flavor: str, text: str, wanted: str, unwanted: str) -> None:
    choice = GtidChoice.parse(text, flavor)
    assert choice.wants(wanted)
    assert not choice.wants(unwanted)
    assert not choice.wants(None)


def test_gtids_that_are_not_valid() -> None:
    for flavor in ("mysql", "mariadb"):
        with pytest.raises(EngineError):
            GtidChoice.parse("7", flavor)


def test_databases() -> None:
    selection = Selection(TableFilter(("shop.*", "crm_?.users"), ("logs.*",)))
    assert [selection.may_want_database(name) for name in ("shop", "crm_1", "logs", "other")] == [
        True,
        True,
        False,
        False,
    ]
    assert Selection(TableFilter((), ("logs.*",))).may_want_database("shop")
