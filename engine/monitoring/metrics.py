"""The table of metrics: the name, kind and meaning of each, and how it follows from the figures.

A value that is not known has no sample. Tables are labels for the first hundred only; the others are added up
under one label, so that the number of series stays bounded and every sum goes up only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from engine.dataclass import dataclass
from engine.monitoring.figures import Figures, ProcessFigures, TableFigures
from engine.monitoring.health import not_alive, not_ready

PREFIX = "binlog_engine_"
LABELLED_TABLES = 100
OTHER_TABLES = "(other)"

Samples = Iterable[tuple[tuple[str, ...], float | None]]
"""Values of the labels, and the value; None for one that is not known."""


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric of the table."""

    name: str
    """Without the prefix, and without the `_total` of counters."""
    kind: Literal["gauge", "counter"]
    help: str
    samples: Callable[[Figures], Samples]
    labels: tuple[str, ...] = ()

    @property
    def shown_name(self) -> str:
        """As queries name it."""
        return f"{PREFIX}{self.name}{'_total' if self.kind == 'counter' else ''}"

    def family(self, figures: Figures) -> Metric:
        """Its samples now."""
        return self._family((), {(): figures})

    def family_of_sources(self, figures: Mapping[str, Figures]) -> Metric:
        """Its samples of several sources by name, with the label `source`."""
        return self._family(("source",), {(name,): of_source for name, of_source in figures.items()})

    def _family(self, further: tuple[str, ...], figures: Mapping[tuple[str, ...], Figures]) -> Metric:
        make = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}[self.kind]
        family = make(PREFIX + self.name, self.help, labels=(*further, *self.labels))
        for values, of_one in figures.items():
            for labels, value in self.samples(of_one):
                if value is not None:
                    family.add_metric((*values, *labels), value)
        return family


def _one(value: Callable[[Figures], float | None]) -> Callable[[Figures], Samples]:
    return lambda figures: [((), value(figures))]


def _of_processes(value: Callable[[ProcessFigures], float | None]) -> Callable[[Figures], Samples]:
    return lambda figures: [((process.name,), value(process)) for process in figures.processes]


def _of_tables(value: Callable[[TableFigures], int]) -> Callable[[Figures], Samples]:
    def samples(figures: Figures) -> Samples:
        tables = figures.output.tables
        yield from (((table.name,), value(table)) for table in tables[:LABELLED_TABLES])
        if others := tables[LABELLED_TABLES:]:
            yield (OTHER_TABLES,), sum(map(value, others))

    return samples


def _notices(figures: Figures) -> Samples:
    return [((level,), count) for level, count in figures.notice_counts.items()]


_SNAPSHOT_STATES = ("waiting", "running", "done", "failed", "cancelled")

METRICS = (
    MetricRow("live", "gauge", "1 if every process answers, else 0", _one(lambda f: not not_alive(f))),
    MetricRow("ready", "gauge", "1 if the stream makes progress, else 0", _one(lambda f: not not_ready(f))),
    MetricRow(
        "lag_seconds",
        "gauge",
        "No change that is older is missing in the output; 0 while the server says that none is missing",
        _one(lambda f: f.lag_seconds),
    ),
    MetricRow(
        "behind_bytes",
        "gauge",
        "Bytes of binlog from the output's position to the end of the server's binlog",
        _one(lambda f: f.server.behind_bytes),
    ),
    MetricRow(
        "retention_headroom_seconds",
        "gauge",
        "From the start of the server's oldest binlog file to the time up to which the output is complete",
        _one(lambda f: f.server.headroom_seconds),
    ),
    MetricRow(
        "retention_headroom_bytes",
        "gauge",
        "Bytes of binlog from the beginning of the server's oldest file to the output's position",
        _one(lambda f: f.server.headroom_bytes),
    ),
    MetricRow(
        "retention_headroom_change",
        "gauge",
        "Seconds by which the headroom grows in a second, over the last 10 minutes; below 0 it shrinks",
        _one(lambda f: f.server.headroom_change),
    ),
    MetricRow(
        "server_asked_seconds",
        "gauge",
        "Since the server last said where its binlog begins and ends",
        _one(lambda f: f.server.asked_seconds),
    ),
    MetricRow(
        "caught_up_seconds",
        "gauge",
        "Since the server last had nothing that is not committed",
        _one(lambda f: f.caught_up_seconds),
    ),
    MetricRow(
        "stalled_seconds",
        "gauge",
        "Since the sink last took a batch, or the server last had nothing to send",
        _one(lambda f: f.stalled_seconds),
    ),
    MetricRow(
        "uncommitted_seconds",
        "gauge",
        "How long the oldest finished transaction has waited to be on disk; 0 if none waits",
        _one(lambda f: f.uncommitted_seconds),
    ),
    MetricRow(
        "waiting_results",
        "gauge",
        "Decoded batches that wait for one before them",
        _one(lambda f: f.waiting_results),
    ),
    MetricRow(
        "received_bytes",
        "counter",
        "Bytes of binlog received by this command",
        _one(lambda f: f.received_bytes),
    ),
    MetricRow(
        "transactions",
        "counter",
        "Transactions that have ended, in this command",
        _one(lambda f: f.totals.transactions),
    ),
    MetricRow("rows", "counter", "Rows committed by this command", _one(lambda f: f.totals.rows)),
    MetricRow(
        "written_bytes",
        "counter",
        "Bytes of data files committed by this command",
        _one(lambda f: f.totals.bytes),
    ),
    MetricRow(
        "dropped_rows",
        "counter",
        "Rows of transactions that never ended, written and removed again",
        _one(lambda f: f.totals.dropped_rows),
    ),
    MetricRow(
        "skipped_corrupt_events",
        "counter",
        "Corrupt events skipped by this command",
        _one(lambda f: f.totals.skipped_corrupt_events),
    ),
    MetricRow(
        "back_pressure_seconds",
        "counter",
        "Time in which nothing was received because decoders or sink were slower",
        _one(lambda f: f.waited_seconds),
    ),
    MetricRow(
        "reconnects",
        "counter",
        "Runs after the first one of this command",
        _one(lambda f: max(0, f.attempts - 1)),
    ),
    MetricRow("warnings", "counter", "Warnings and errors of this command", _notices, labels=("level",)),
    MetricRow(
        "last_commit", "gauge", "Number of the last commit of the output", _one(lambda f: f.output.commit)
    ),
    MetricRow(
        "last_commit_timestamp_seconds",
        "gauge",
        "When the last commit was made, since the epoch",
        _one(lambda f: f.output.commit_time),
    ),
    MetricRow(
        "table_rows",
        "counter",
        "Change rows of a table since the output's first commit",
        _of_tables(lambda table: table.rows),
        labels=("table",),
    ),
    MetricRow(
        "table_bytes",
        "counter",
        "Bytes of data files of a table since the output's first commit",
        _of_tables(lambda table: table.bytes),
        labels=("table",),
    ),
    MetricRow(
        "table_files",
        "counter",
        "Data files of a table since the output's first commit",
        _of_tables(lambda table: table.files),
        labels=("table",),
    ),
    MetricRow(
        "counted",
        "counter",
        "What the commits have counted since the first one, such as zero_dates",
        lambda f: [((what,), count) for what, count in sorted(f.output.counters.items())],
        labels=("what",),
    ),
    MetricRow(
        "unsure_tables",
        "gauge",
        "Tables whose definition is not certain",
        _one(lambda f: f.output.unsure_tables),
    ),
    MetricRow(
        "rewritten_tables",
        "gauge",
        "Tables that are changed by statement: a snapshot is due",
        _one(lambda f: f.output.rewritten_tables),
    ),
    MetricRow(
        "prepared_transactions",
        "gauge",
        "XA transactions that have rows in the output and have not ended",
        _one(lambda f: f.output.prepared_transactions),
    ),
    MetricRow(
        "snapshot_tables",
        "gauge",
        "Tables by the state of their latest snapshot",
        lambda f: [((state,), getattr(f.output.snapshot, state)) for state in _SNAPSHOT_STATES],
        labels=("state",),
    ),
    MetricRow(
        "snapshot_rows",
        "gauge",
        "Rows committed of the snapshots that have not ended",
        _one(lambda f: f.output.snapshot.rows),
    ),
    MetricRow(
        "snapshot_expected_rows",
        "gauge",
        "The server's estimate of all rows of these snapshots",
        _one(lambda f: f.output.snapshot.expected_rows),
    ),
    MetricRow(
        "disk_free_bytes",
        "gauge",
        "Bytes free for this user on the file system of the output",
        _one(lambda f: f.output.disk_free_bytes),
    ),
    MetricRow(
        "disk_left_seconds",
        "gauge",
        "Until the disk is full if its free space goes on to shrink as in the last 10 minutes; else +Inf",
        _one(lambda f: f.disk_left_seconds),
    ),
    MetricRow(
        "process_silent_seconds",
        "gauge",
        "Since a process last answered",
        _of_processes(lambda process: process.silent_seconds),
        labels=("process",),
    ),
    MetricRow(
        "process_resident_bytes",
        "gauge",
        "Resident memory of a process; shared memory counts in each",
        _of_processes(lambda process: process.resident_bytes),
        labels=("process",),
    ),
    MetricRow(
        "process_peak_bytes",
        "gauge",
        "Resident memory of a process at its peak; shared memory counts in each",
        _of_processes(lambda process: process.peak_bytes),
        labels=("process",),
    ),
    MetricRow(
        "process_cpu_seconds",
        "counter",
        "Processor time of a process, in user and kernel mode",
        _of_processes(lambda process: process.cpu_seconds),
        labels=("process",),
    ),
    MetricRow(
        "process_open_files",
        "gauge",
        "Open file descriptors of a process",
        _of_processes(lambda process: process.open_files),
        labels=("process",),
    ),
)
"""All metrics but the histogram `commit_seconds` and `info`."""
