"""How fast changes get into Delta tables: the mirror beside plain MERGEs of the same rows from Parquet.

The targets are there before: in one case a large table, in the other one a hundred small ones. Every run
changes a copy of them. The limit merges rows that are ready in Parquet files, one for each key, by the same
statement and as many tables side by side. Spark runs in a process of its own, with the version of PySpark
that Delta is for.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from engine.binlog.table_definition import ColumnDefinition
from perf.binlog import binlog_of, served
from perf.case import Case, Settings, no_material
from perf.measurement import Measurement, PeerError, run_command
from perf.peer import Peer
from perf.peers.engine import engine_command
from perf.workload import DATABASE
from perf.workloads import BULK
from tests.servers import UnavailableError
from tests.support.lakehouse import Lakehouse, session
from tests.support.logged_table import Table
from tests.support.output import Output

LARGE, MANY = "mirror", "mirror-many"
_TIMES_LARGER = 10
_TABLES, _CHANGES = 100, 1000
_SIDE_BY_SIDE = 4
COLUMNS = (
    ColumnDefinition("id", "int", nullable=False, primary_key=1),
    ColumnDefinition("name", "varchar(40)"),
    ColumnDefinition("amount", "bigint"),
)
"""Of small tables."""


@dataclass(frozen=True)
class Changed:
    """An output, targets that lack its rows, and the same rows in Parquet files."""

    lake: Lakehouse
    out: Path
    tables: tuple[str, ...]
    base: Path
    """The folder of the targets."""
    parquet: Path
    folder: Path


def mirror_case(name: str, settings: Settings) -> Case[Changed]:
    """One of the two cases."""
    offer = {LARGE: _large, MANY: _many}[name]
    titles = {
        LARGE: f"the bulk load's rows as updates of a Delta table of {_TIMES_LARGER} times as many rows",
        MANY: f"{_CHANGES:,} rows into each of {_tables(settings)} Delta tables of as many",
    }
    return Case(
        name=name,
        title=titles[name],
        group="mirror: change rows into Delta tables",
        material=partial(binlog_of, BULK, settings.scale) if name == LARGE else no_material,
        offer=partial(offer, settings),
        peers=(Into("mirror", _mirrored), Into("MERGE from Parquet", _merged)),
    )


def _tables(settings: Settings) -> int:
    """The number of tables of the case with many."""
    return max(2, round(_TABLES * settings.scale))


class Into(Peer[Changed]):
    """One way to bring the rows into copies of the targets."""

    most_runs = 3

    def __init__(self, name: str, write: Any) -> None:
        self.name = name
        self._write = write
        self._runs = 0

    def warm_up(self, subject: Changed) -> None:
        self.measure(subject)

    def measure(self, subject: Changed) -> Measurement:
        self._runs += 1
        copy = subject.folder / f"{self.name.partition(' ')[0]}-{self._runs}"
        shutil.copytree(subject.base, copy)
        target = f"{copy}/{{database}}/{{table}}"
        try:
            seconds = subject.lake.call(self._write, subject.out, subject.parquet, target, subject.tables)
        finally:
            shutil.rmtree(copy)
        return Measurement(seconds)


def _mirrored(out: Path, parquet: Path, target: str, tables: tuple[str, ...]) -> float:
    from engine.lakehouse import Mirror, MirrorOptions

    mirror = Mirror(session(), out, target, options=MirrorOptions(side_by_side=_SIDE_BY_SIDE))
    begun = time.perf_counter()
    done = mirror.run(once=True)
    seconds = time.perf_counter() - begun
    if mirror.set_aside or done is None or done.tables != len(tables):
        raise PeerError(f"it did not reach all tables: {mirror.set_aside}")
    return seconds


def _merged(out: Path, parquet: Path, target: str, tables: tuple[str, ...]) -> float:
    from engine.lakehouse.statements import merge_rows

    def merge(table: str) -> None:
        rows = session().read.parquet(f"{parquet}/{table}")
        names = [name for name in rows.columns if name not in ("_seq", "_change_type")]
        source = f"parquet.`{parquet}/{table}`"
        session().sql(merge_rows(_target(target, table).sql_name, source, ["id"], names)).collect()

    begun = time.perf_counter()
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        list(pool.map(merge, tables))
    return time.perf_counter() - begun


def _target(target: str, table: str) -> Any:
    from engine.lakehouse.formats import FORMATS
    from engine.lakehouse.target import TargetTemplate
    from engine.schema.changes import TableName

    return FORMATS["delta"].table(session(), TargetTemplate(target), TableName(*table.split(".", 1)))


def _prepare(out: Path, base: str, parquet: Path, tables: tuple[str, ...], times: int) -> None:
    """The targets in `base`, with the rows' keys `times` over and `_seq` 0, and the rows as Parquet."""
    from engine.lakehouse import Mirror
    from engine.lakehouse.target import Layout

    first = f"{parquet}-first/{{database}}/{{table}}"
    Mirror(session(), out, first).run(once=True)
    for table in tables:
        kept, target = _target(first, table), _target(base, table)
        state, rows = kept.state(), session().table(kept.sql_name)
        rows.selectExpr("*", "'insert' AS _change_type").write.parquet(f"{parquet}/{table}")
        target.create({c.name: c.kind for c in state.columns}, replace(state.note, seq=0), Layout())
        more = rows.crossJoin(session().range(times).withColumnRenamed("id", "_times"))
        highest = rows.selectExpr("max(id)").first()[0] + 1
        values = [
            {"id": f"CAST(id + _times * {highest} AS {column.kind}) AS id", "_seq": "0L AS _seq"}.get(
                column.name, column.name
            )
            for column in state.columns
        ]
        more.selectExpr(*values).createOrReplaceTempView("more")
        session().sql(f"INSERT INTO {target.sql_name} SELECT * FROM more")


@contextmanager
def spark_with_delta(folder: Path) -> Iterator[Lakehouse]:
    """A Spark process as users have it, whose targets are in that folder. Raises `PeerError`."""
    try:
        lake = Lakehouse("delta", folder, compiles=True)
    except UnavailableError as error:
        raise PeerError(str(error)) from None
    with lake:
        yield lake


@contextmanager
def _prepared(settings: Settings, out: Path, tables: tuple[str, ...], times: int) -> Iterator[Changed]:
    with tempfile.TemporaryDirectory(dir=settings.work) as place:
        folder = Path(place)
        base, parquet = folder / "base", folder / "parquet"
        with spark_with_delta(folder) as lake:
            lake.call(_prepare, out, f"{base}/{{database}}/{{table}}", parquet, tables, times)
            yield Changed(lake, out, tables, base, parquet, folder)


@contextmanager
def _large(settings: Settings, binlog: Any) -> Iterator[Changed]:
    with tempfile.TemporaryDirectory(dir=settings.work) as folder:
        out = Path(folder) / "changes"
        with served(binlog) as subject:
            run_command(engine_command(subject, out, settings.workers, Path(folder) / "report.json"))
        with _prepared(settings, out, (f"{DATABASE}.bulk",), _TIMES_LARGER) as changed:
            yield changed


@contextmanager
def _many(settings: Settings, binlog: None) -> Iterator[Changed]:
    with tempfile.TemporaryDirectory(dir=settings.work) as folder:
        output = Output(Path(folder))
        tables = [Table(output, *COLUMNS, name=f"t{number}") for number in range(_tables(settings))]
        for table in tables:
            for number in range(_CHANGES):
                table.insert(id=number, name=f"name {number}", amount=number)
            table.commit()
        with _prepared(settings, output.path, tuple(str(table.name) for table in tables), 1) as changed:
            yield changed
