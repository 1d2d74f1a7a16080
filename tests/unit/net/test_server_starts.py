"""When a server is asked which prepared transactions it still has, and what becomes of its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.net import server_starts
from engine.net.client.refusals import Refusal
from engine.net.client.xa_recover import HIDDEN
from engine.net.server_starts import ServerStarts
from engine.pipeline.process_settings import ServerSource
from tests.support.binlog_builder import MARIADB, format_description
from tests.support.figures import plan

FILE, NEXT, AFTER = "binlog.000003", "binlog.000004", 256
ONE, TWO = "X'31',X'',1", "X'32',X'',1"


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ServerStarts]:
    """Those of a dump from `FILE` on, at a server that has ONE and TWO left, or raises `refusal`."""

    def make(
        *,
        by_gtid: bool = False,
        may_lose_prepared: bool = True,
        refusal: Refusal | None = None,
        are_hidden: Any = None,
    ) -> ServerStarts:
        def answer(*_: object) -> frozenset[str]:
            if refusal is not None:
                raise refusal
            return frozenset({TWO, ONE})

        monkeypatch.setattr(server_starts, "surviving_xids", answer)
        monkeypatch.setattr(server_starts, "format_event", lambda *_: format_description(MARIADB))
        origin = plan(tmp_path).origin
        assert isinstance(origin, ServerSource)
        origin = replace(origin, file=FILE, by_gtid=by_gtid, may_lose_prepared=may_lose_prepared)
        unused: Any = None
        return ServerStarts(origin, unused, unused, unused, are_hidden)

    return make


def test_only_where_the_server_was_started(starts: Callable[..., ServerStarts]) -> None:
    made = starts()
    assert made.survivors(FILE, AFTER, False) is None
    assert made.survivors(NEXT, AFTER, True) == (ONE, TWO)


def test_a_dump_by_gtid_may_leave_out_that_the_server_was_started(
    starts: Callable[..., ServerStarts],
) -> None:
    """If it begins with another file than the one in which the last one ended."""
    made = starts(by_gtid=True)
    assert made.survivors(NEXT, AFTER, False) == (ONE, TWO)
    assert made.survivors("binlog.000005", AFTER, False) is None
    assert starts(by_gtid=True).survivors(FILE, AFTER, False) is None


def test_a_server_that_loses_nothing_is_not_asked(starts: Callable[..., ServerStarts]) -> None:
    assert starts(may_lose_prepared=False).survivors(NEXT, AFTER, True) is None


def test_a_server_that_does_not_list_them_for_this_user(starts: Callable[..., ServerStarts]) -> None:
    said: list[bool] = []
    made = starts(refusal=Refusal("access denied", HIDDEN), are_hidden=lambda: said.append(True))
    assert made.survivors(NEXT, AFTER, True) is None
    assert said == [True]


def test_what_serves_binlogs_alone_need_not_know(starts: Callable[..., ServerStarts]) -> None:
    assert starts(refusal=Refusal("it has no XA RECOVER", 1064)).survivors(NEXT, AFTER, True) is None
    with pytest.raises(Refusal, match="later"):
        starts(refusal=Refusal("try later", 1040, retryable=True)).survivors(NEXT, AFTER, True)
