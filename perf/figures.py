"""The table of target figures, each with the function that computes it from the results.

They apply to two cores, medians of one measurement, verified checksums and all metadata columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from perf.archive import ARCHIVE, DECODE_COMMAND
from perf.case import CaseResult
from perf.latency import ALLOWED_SECONDS, INTERVALS, condition
from perf.memory import PROPORTIONAL
from perf.scaling import size_name
from perf.snapshot_lag import LAG_INTERVALS, lag_condition
from perf.spark_read import BATCH, PARQUET, STREAM
from perf.spark_settings import ADVISED, SPARK_SETTINGS, STREAM_MULTIPLE
from perf.start_up import WARM
from perf.workloads import DECODED

CONNECTOR = "mysql-binlog-connector-java"
CONNECTOR_TEXT = "connector-java with text"
REPLICATION = "mysql-replication"
RAW = "mysqlbinlog --raw"
DEBEZIUM = "Debezium embedded"
MYDUMPER = "mydumper"
CONNECTORX = "connectorx"
DEBEZIUM_SNAPSHOT = "Debezium's snapshot"

Results = Mapping[str, CaseResult]
"""Case results by the case's name."""
Reach = Callable[[Results], float | None]
"""Returns the figure; None if it was not measured."""


@dataclass(frozen=True)
class Figure:
    """A figure to reach."""

    what: str
    against: str
    asked: float
    reach: Reach
    unit: str = "×"
    at_least: bool = True
    """Whether `asked` is a minimum; else it is a maximum."""
    headline: bool = False
    """Whether the README shows it."""

    def score(self, reached: float) -> float:
        """The reached figure relative to the asked one: 1 or more means that it is reached."""
        return reached / self.asked if self.at_least else self.asked / reached


def ratio(case: str, peer: str) -> Reach:
    """The engine's rate as a multiple of the peer's."""

    def reach(results: Results) -> float | None:
        found = results[case].peer(peer) if case in results else None
        return None if found is None else results[case].ratio(found)

    return reach


def least_ratio(peer: str, cases: str = "") -> Reach:
    """The lowest ratio to the peer over all cases that have it and whose names begin with `cases`."""

    def reach(results: Results) -> float | None:
        every = [ratio(name, peer)(results) for name in results if name.startswith(cases)]
        return min((found for found in every if found is not None), default=None)

    return reach


def seconds(case: str, peer: str, factor: float = 1.0) -> Reach:
    """The peer's median seconds, times a factor."""

    def reach(results: Results) -> float | None:
        found = results[case].peer(peer) if case in results else None
        return None if found is None else factor * found.seconds

    return reach


def value(case: str, peer: str, name: str) -> Reach:
    """The median of a peer's value."""

    def reach(results: Results) -> float | None:
        found = results[case].peer(peer) if case in results else None
        return None if found is None else found.value(name)

    return reach


def growth(case: str, from_case: str) -> Reach:
    """The engine's seconds per byte in `case`, as a multiple of those in `from_case`."""

    def reach(results: Results) -> float | None:
        pace = [
            results[name].engine.seconds / results[name].bytes
            for name in (case, from_case)
            if name in results and results[name].engine.runs
        ]
        return pace[0] / pace[1] if len(pace) == 2 else None

    return reach


FIGURES = (
    Figure("decode, bulk inserts", CONNECTOR, 3, ratio("decode-bulk", CONNECTOR), headline=True),
    Figure("decode, one-row transactions", CONNECTOR, 2, ratio("decode-transactions", CONNECTOR)),
    *(
        Figure(f"decode, {workload.name}", CONNECTOR, 2, ratio(f"decode-{workload.name}", CONNECTOR))
        for workload in DECODED
        if workload.name not in ("bulk", "transactions")
    ),
    *(
        Figure(f"decode, {name}, all as text", CONNECTOR_TEXT, 2, ratio(f"decode-{name}", CONNECTOR_TEXT))
        for name in ("long-strings", "json")
    ),
    Figure("decode, the least of all cases", REPLICATION, 150, least_ratio(REPLICATION, "decode-")),
    Figure("end to end, bulk", RAW, 1, ratio("bulk", RAW), headline=True),
    Figure("end to end, one-row transactions", RAW, 2, ratio("transactions", RAW), headline=True),
    *(
        Figure(f"end to end, {what}", peer, asked, ratio(case, peer))
        for case, what in (("oltp", "200 tables"), ("many", "300 tables, some used more than others"))
        for peer, asked in ((RAW, 1.5), (CONNECTOR, 1.5), (DEBEZIUM, 15))
    ),
    Figure(
        "end to end, a few rows",
        "half of 150 ms, as it was",
        75,
        seconds("short", "engine", 1000),
        "ms",
        at_least=False,
    ),
    Figure("end to end, bulk, TLS", f"{RAW} over TLS", 0.8, ratio("bulk-tls", RAW)),
    Figure("end to end, one-row transactions, TLS", f"{RAW} over TLS", 1.5, ratio("transactions-tls", RAW)),
    Figure("end to end, the least of all cases", DEBEZIUM, 20, least_ratio(DEBEZIUM), headline=True),
    *(
        Figure(
            f"latency, p99 at half load, commits every {interval * 1000:,.0f} ms",
            "the interval + 50 ms",
            (interval + ALLOWED_SECONDS) * 1000,
            value("latency", condition(interval, 0.5), "p99 ms"),
            "ms",
            at_least=False,
            headline=interval == 0.2,
        )
        for interval in INTERVALS
    ),
    *(
        Figure(f"snapshot, {what}", peer, asked, ratio(case, peer), headline=case == "snapshot-bulk")
        for case, what in (
            ("snapshot-bulk", "four connections"),
            ("snapshot-bulk-alone", "one connection"),
            ("snapshot-wide", "wide rows"),
            ("snapshot-many", "many tables"),
        )
        for peer, asked in ((MYDUMPER, 1), (CONNECTORX, 1), (DEBEZIUM_SNAPSHOT, 10))
    ),
    *(
        Figure(
            f"latency during a snapshot, p99 at half load, commits every {interval * 1000:,.0f} ms",
            "twice the interval",
            2 * interval * 1000,
            value("snapshot-lag", lag_condition(interval), "p99 ms"),
            "ms",
            at_least=False,
        )
        for interval in LAG_INTERVALS
    ),
    Figure("Spark, batch read", PARQUET, 0.8, ratio(BATCH, PARQUET)),
    Figure("Spark, streaming read", PARQUET, 1 / 1.3, ratio(STREAM, PARQUET)),
    Figure(
        "Spark, a streaming read's time with the settings of docs/spark.md",
        PARQUET,
        1.3,
        value(SPARK_SETTINGS, ADVISED, STREAM_MULTIPLE),
        at_least=False,
    ),
    Figure(
        "an archive's rows for a second of processor time",
        DECODE_COMMAND,
        0.7,
        ratio(ARCHIVE, DECODE_COMMAND),
    ),
    Figure(
        "time for a byte, 5 GB of binlog",
        "1 GB of binlog",
        1.1,
        growth(size_name(5), size_name(1)),
        at_least=False,
    ),
    Figure(
        "memory of all processes, 5 GB of binlog",
        "",
        1200,
        value(size_name(5), "engine", PROPORTIONAL),
        "MB",
        at_least=False,
        headline=True,
    ),
    Figure(
        "start-up, warm kernel cache",
        "the first committed row",
        2,
        seconds("start-up", WARM),
        "s",
        at_least=False,
    ),
)
