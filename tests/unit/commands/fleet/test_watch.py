"""What a fleet answers over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from engine.commands.fleet import watch as watch_module
from engine.commands.fleet.answers import fleet_answer
from engine.commands.fleet.source_state import SourceState
from engine.commands.fleet.watch import FleetWatch
from engine.monitoring.answers import monitor_answer
from engine.monitoring.monitor import Monitor
from engine.monitoring.server import Answer, served
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
    with served("127.0.0.1:0", partial(fleet_answer, watch), listener, "metrics"):
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


def test_every_source_has_the_paths_of_run(tmp_path: Path) -> None:
    watch = FleetWatch()
    monitors = {name: Monitor(tmp_path / name, name, Observer()) for name in ("shop", "crm.eu-1")}
    watch.show(tuple(SourceState(name, "/out", "running") for name in monitors), monitors)

    def answer(path: str) -> Answer:
        return fleet_answer(watch, path, "")

    assert b'id="sources"' in answer("/").content
    sources = json.loads(answer("/status.json").content)["sources"]
    for name, source in zip(monitors, sources, strict=True):
        page = f"/{source['page']}"
        assert (source["name"], page) == (name, f"/source/{name}/")
        assert answer(page) == monitor_answer(monitors[name], "/", "")
        assert json.loads(answer(f"{page}status.json").content)["figures"]["run"] == name
        assert b"binlog_engine_reconnects_total 0.0" in answer(f"{page}metrics").content
        # The source's own probe: here, no run has begun.
        assert answer(f"{page}livez").status == 200 and answer(f"{page}readyz").status == 503
    # A name may be escaped, as any text in a URL.
    assert answer("/source/crm%2Eeu%2D1/livez").status == 200


def test_sources_and_paths_that_are_not_there(tmp_path: Path) -> None:
    watch = FleetWatch()
    watch.show((), {"shop": Monitor(tmp_path, "shop", Observer())})
    for path, sentence in (
        ("/source/nosuch/", "the fleet has no source `nosuch`: the page at / lists those it has"),
        ("/source/", "the fleet has no source ``: the page at / lists those it has"),
        ("/source/..%2Fshop/", "the fleet has no source `../shop`: the page at / lists those it has"),
        ("/source/%1B%FF/", "the fleet has no source `\\u001b\ufffd`: the page at / lists"),
        ("/nothing", "there are: / /metrics /livez /readyz /status.json"),
        ("/source/shop", "there are: /source/shop/ /source/shop/metrics /source/shop/livez"),
        ("/source/shop/x", "there are: /source/shop/ /source/shop/metrics /source/shop/livez"),
    ):
        refused = fleet_answer(watch, path, "")
        assert refused.status == 404
        assert refused.content.decode().startswith(sentence)
        assert refused.media_type.startswith("text/plain")
