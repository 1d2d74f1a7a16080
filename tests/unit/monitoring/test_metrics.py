"""`/metrics`, and the documents that name metrics: the page of the docs, the alert rules, the dashboard."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib import resources

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as older_text_to_families

from engine.monitoring.figures import Figures, OutputFigures, ServerFigures, TableFigures
from engine.monitoring.metrics import LABELLED_TABLES, METRICS
from engine.monitoring.openmetrics import COMMIT_SECONDS, COMMIT_SECONDS_HELP, INFO, INFO_HELP, exposition
from tests import PROJECT
from tests.support.figures import FIGURES

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
FILES = resources.files("engine.monitoring") / "prometheus"
NAME = re.compile(r"\bbinlog_engine_\w+")


def samples(figures: Figures = FIGURES) -> dict[tuple[str, ...], float]:
    """The value of each sample, by its name and the values of its labels."""
    content, media_type = exposition(figures, OPENMETRICS)
    assert media_type.startswith("application/openmetrics-text; version=1.0.0")
    families = text_string_to_metric_families(content.decode())  # type: ignore[no-untyped-call]
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_values_are_those_of_the_figures() -> None:
    seen = samples()
    for name, value in {
        ("binlog_engine_live",): 1,
        ("binlog_engine_ready",): 1,
        ("binlog_engine_lag_seconds",): 2.0,
        ("binlog_engine_behind_bytes",): 50,
        ("binlog_engine_retention_headroom_seconds",): 3600.0,
        ("binlog_engine_retention_headroom_change",): 0.5,
        ("binlog_engine_reconnects_total",): 2,
        ("binlog_engine_table_rows_total", "shop.orders"): 10,
        ("binlog_engine_counted_total", "zero_dates"): 4,
        ("binlog_engine_disk_left_seconds",): float("inf"),
        ("binlog_engine_process_open_files", "sink"): 20,
        ("binlog_engine_process_cpu_seconds_total", "network"): 1.5,
        ("binlog_engine_warnings_total", "warning"): 1,
        ("binlog_engine_commit_seconds_bucket", "0.005"): 1,
        ("binlog_engine_commit_seconds_bucket", "30.0"): 1,
        ("binlog_engine_commit_seconds_bucket", "+Inf"): 2,
        ("binlog_engine_commit_seconds_sum",): 60.003,
    }.items():
        assert seen[name] == value, name


def test_unknown_values_have_no_sample() -> None:
    seen = samples(replace(FIGURES, lag_seconds=None, server=ServerFigures(), output=OutputFigures()))
    names = {name for name, *_ in seen}
    assert not names & {
        "binlog_engine_lag_seconds",
        "binlog_engine_behind_bytes",
        "binlog_engine_disk_free_bytes",
    }
    assert "binlog_engine_stalled_seconds" in names


def test_the_older_format_has_the_same_samples() -> None:
    content, media_type = exposition(FIGURES, "text/plain")
    assert media_type.startswith("text/plain")
    older = {
        (sample.name, *sample.labels.values()): sample.value
        for family in older_text_to_families(content.decode())
        for sample in family.samples
    }
    assert older == samples()


@pytest.mark.parametrize("name", ['a"b\\c', "new\nline", "naïve.täble"])
def test_names_of_tables_are_quoted(name: str) -> None:
    output = replace(FIGURES.output, tables=(TableFigures(name, 1, 2, 3),))
    assert samples(replace(FIGURES, output=output))["binlog_engine_table_bytes_total", name] == 2


def test_tables_beyond_the_limit_are_added_up() -> None:
    tables = tuple(TableFigures(f"shop.t{number}", number, 1, 1) for number in range(LABELLED_TABLES + 3))
    seen = samples(replace(FIGURES, output=replace(FIGURES.output, tables=tables)))
    rows = {
        labels[0]: value
        for (name, *labels), value in seen.items()
        if name == "binlog_engine_table_rows_total"
    }
    assert len(rows) == LABELLED_TABLES + 1
    assert rows["(other)"] == sum(range(LABELLED_TABLES, LABELLED_TABLES + 3))
    assert sum(rows.values()) == sum(table.rows for table in tables)


def test_the_documentation_lists_every_metric() -> None:
    rows: list[tuple[str, str, str, str]] = [
        (row.shown_name, row.kind, ", ".join(row.labels), row.help) for row in METRICS
    ]
    rows.append((COMMIT_SECONDS, "histogram", "", COMMIT_SECONDS_HELP))
    rows.append((f"{INFO}_info", "info", "version, run, out, server", INFO_HELP))
    text = (PROJECT / "docs/monitoring.md").read_text()
    table = text.partition("<!-- metrics:start -->\n")[2].partition("<!-- metrics:end -->")[0]
    expected = [f"| `{name}` | {kind} | {labels} | {meaning} |" for name, kind, labels, meaning in rows]
    assert table.splitlines()[2:] == expected
    in_metrics = {name for name, *_ in samples()}
    assert {name for name, kind, *_ in rows if kind != "histogram"} <= in_metrics


@pytest.mark.parametrize("file", ["alerts.yaml", "dashboard.json"])
def test_rules_and_dashboard_use_metrics_that_exist(file: str) -> None:
    used = set(NAME.findall((FILES / file).read_text()))
    assert len(used) > 10
    assert used <= {name for name, *_ in samples()}


def test_labels_in_the_dashboard_exist() -> None:
    labels = {label for row in METRICS for label in row.labels} | {"instance"}
    panels = json.loads((FILES / "dashboard.json").read_text())["panels"]
    legends = " ".join(target["legendFormat"] for panel in panels for target in panel["targets"])
    assert set(re.findall(r"\{\{(\w+)\}\}", legends)) <= labels
    assert len({panel["id"] for panel in panels}) == len(panels)
