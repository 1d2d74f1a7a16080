"""What each added column costs a batch read of Spark: a read of `_seq` and that column, beside `_seq` alone.

The rest of a read is the same for all of them, and short, so that it hides little of the difference.
"""

from __future__ import annotations

import os
import time
from functools import partial
from statistics import median

from engine.output.change_schema import METADATA_FIELDS, ORIGIN_NAMES
from perf.binlog import binlog_of
from perf.case import Case, Settings
from perf.measurement import Measurement
from perf.memory import processor_seconds_in_all
from perf.peer import Peer
from perf.spark_read import Readable, binlog_source, read_batch, readable
from perf.workloads import BULK

SPARK_COLUMNS = "spark-columns"
_BASE = "_seq"
_ADDED = (*(field.name for field in METADATA_FIELDS if field.name != _BASE), *ORIGIN_NAMES)
_WARM_UPS = 5
"""Reads until Java has compiled the hot code and the Python workers are running."""
_READS = 5
"""In one measurement, which is their median: single reads vary by more than a column costs."""


def spark_columns_case(settings: Settings) -> Case[Readable]:
    """A batch read of one or two of the added columns of a bulk load's change rows."""
    columns = [(_BASE,), *((_BASE, name) for name in _ADDED), (_BASE, *_ADDED)]
    return Case(
        name=SPARK_COLUMNS,
        title="a batch read of some of the columns that are added to the bulk load's change rows",
        group="Spark: what added columns cost",
        material=partial(binlog_of, BULK, settings.scale),
        offer=partial(readable, settings),
        peers=[ColumnsRead(names) for names in columns],
        compares=False,
    )


class ColumnsRead(Peer[Readable]):
    """A read of these columns only."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.name = "all added columns" if len(columns) > 2 else " and ".join(columns)
        self._columns = columns

    def warm_up(self, subject: Readable) -> None:
        for _ in range(_WARM_UPS):
            self._read(subject)

    def measure(self, subject: Readable) -> Measurement:
        reads = [self._read(subject) for _ in range(_READS)]
        values = {"processor s": median(used for _, used in reads)}
        return Measurement(median(seconds for seconds, _ in reads), values=values)

    def _read(self, subject: Readable) -> tuple[float, float]:
        """Seconds, and seconds of processor time."""
        begun, used = time.perf_counter(), processor_seconds_in_all(os.getpid())
        read_batch(subject, partial(binlog_source, columns=self._columns))
        return time.perf_counter() - begun, processor_seconds_in_all(os.getpid()) - used
