"""What a fleet answers over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from engine.commands.fleet import watch as watch_module
from engine.commands.fleet.source_state import SourceState
from engine.commands.fleet.watch import FleetWatch, served
from engine.errors import EngineError
from engine.monitoring.monitor import Monitor
from engine.pipeline.observer import Happening, Observer


class Listener(Observer):
    url = ""

    def happened(self, happening: Happening) -> None:
        self.url = str(happening.values["url"])


def ask(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_probes_metrics_and_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch, listener = FleetWatch(), Listener()
    good = SourceState("shop", "/out", "running", rows=5, commits=2, processes={"sink": 1})
    with served("127.0.0.1:0", watch, listener):
        assert ask(f"{listener.url}readyz") == (503, "the fleet is starting\n")
        watch.show((good,), {})
        assert ask(f"{listener.url}readyz") == (200, "ok\n")
        monitor = Monitor(tmp_path, "shop", listener)
        monitor.sample()
        waiting = SourceState("crm", "/o", "waiting", error="access denied")
        watch.show((good, waiting), {"shop": monitor})
        assert ask(f"{listener.url}readyz") == (503, "crm is waiting: access denied\n")
        assert ask(f"{listener.url}livez") == (200, "ok\n")
        status, metrics = ask(f"{listener.url}metrics")
        assert status == 200
        for line in (
            'binlog_engine_ready{source="shop"} 1.0',
            'binlog_engine_ready{source="crm"} 0.0',
            'binlog_engine_rows_total{source="shop"} 5.0',
            'binlog_engine_processes{source="shop"} 1.0',
            'binlog_engine_reconnects_total{source="shop"} 0.0',
            'binlog_engine_warnings_total{level="error",source="shop"} 0.0',
        ):
            assert line in metrics.splitlines()
        # Each metric is there once.
        types = [line.split()[2] for line in metrics.splitlines() if line.startswith("# TYPE")]
        assert sorted(types) == sorted(set(types))
        # It is not known yet.
        assert "lag_seconds{" not in metrics
        states = json.loads(ask(f"{listener.url}status.json")[1])["sources"]
        assert [(one["name"], one["stage"]) for one in states] == [("shop", "running"), ("crm", "waiting")]
        assert ask(f"{listener.url}nothing")[0] == 404
        monkeypatch.setattr(watch_module, "_SILENCE_SECONDS", -1.0)
        assert ask(f"{listener.url}livez")[0] == 503


def test_an_address_that_cannot_be_used() -> None:
    with pytest.raises(EngineError, match="--http"), served("nowhere:x", FleetWatch(), Observer()):
        pass
    with served(None, FleetWatch(), Observer()):
        pass
