"""How long a round of the mirror takes if few of many Delta tables have changed since the last one.

The mirror makes one target. The others are copies of its folder, with their own table's name in the log,
since making hundreds takes long and is not what is measured. The first round of a mirror looks at every
target, the ones after it only at those whose tables have changed.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from perf.case import Case, Settings, no_material
from perf.measurement import Measurement, PeerError
from perf.mirror import COLUMNS, spark_with_delta
from perf.peer import Peer
from tests.support.lakehouse import Lakehouse, session
from tests.support.logged_table import Table
from tests.support.output import Output

_TABLES, _CHANGED, _ROWS = 300, 5, 100
_ROUNDS = 6
"""The first one is a warm-up."""


@dataclass(frozen=True)
class Place:
    """A Spark process, and a folder of its own."""

    lake: Lakehouse
    folder: Path
    tables: int


def mirror_rounds_case(settings: Settings) -> Case[Place]:
    """The case; the scale is that of the number of tables."""
    tables = max(_CHANGED, round(_TABLES * settings.scale))
    return Case(
        name="mirror-rounds",
        title=f"a round in which {_CHANGED} of {tables} Delta tables have changed",
        group="mirror: rounds",
        material=no_material,
        offer=lambda _: _place(settings, tables),
        peers=(Rounds(),),
        compares=False,
    )


class Rounds(Peer[Place]):
    """The mirror."""

    name = "mirror"
    most_runs = 1

    def measure(self, subject: Place) -> Measurement:
        first, later = subject.lake.call(_rounds, subject.folder, subject.tables)
        return Measurement(median(later[1:]), values={"first round s": first})


@contextmanager
def _place(settings: Settings, tables: int) -> Iterator[Place]:
    with (
        tempfile.TemporaryDirectory(dir=settings.work) as place,
        spark_with_delta(Path(place)) as lake,
    ):
        yield Place(lake, Path(place), tables)


def _rounds(folder: Path, number: int) -> tuple[float, list[float]]:
    """The seconds of a mirror's first round, in which nothing has changed, and of those after it."""
    from engine.config.table_filter import TableFilter
    from engine.lakehouse import Mirror, MirrorOptions

    output, target = Output(folder / "changes"), f"{folder}/lake/{{database}}/{{table}}"
    tables = [Table(output, *COLUMNS, name=f"t{each:03}") for each in range(number)]
    for table in tables:
        for row in range(_ROWS):
            table.insert(id=row, name=f"name {row}", amount=row)
        table.commit()
    only_first = MirrorOptions(tables=TableFilter((str(tables[0].name),)))
    Mirror(session(), output.path, target, options=only_first).run(once=True)
    for table in tables[1:]:
        _copy(folder / "lake", tables[0], table)
    mirror = Mirror(session(), output.path, target)
    seconds = [_seconds(mirror, 0)]
    for each in range(_ROUNDS):
        for table in tables[:_CHANGED]:
            table.update(table.rows[each], amount=-1)
            table.commit()
        seconds.append(_seconds(mirror, _CHANGED))
    return seconds[0], seconds[1:]


def _copy(lake: Path, first: Table, other: Table) -> None:
    """Make the target of another table from that of the first one."""
    folder = lake / other.name.database / other.name.table
    shutil.copytree(lake / first.name.database / first.name.table, folder)
    for log in (folder / "_delta_log").iterdir():
        if log.suffix in (".json", ".crc") and not log.name.startswith("."):
            log.write_text(log.read_text().replace(str(first.name), str(other.name)))
        elif log.name.endswith(".json.crc"):
            # Hadoop's checksum of the text before.
            log.unlink()


def _seconds(mirror: object, rows: int) -> float:
    from engine.lakehouse import Mirror

    assert isinstance(mirror, Mirror)
    begun = time.perf_counter()
    done = mirror.run(once=True)
    seconds = time.perf_counter() - begun
    # An update has two change rows.
    if mirror.set_aside or done is None or done.rows != 2 * rows:
        raise PeerError(f"the round went wrong: {done}, {mirror.set_aside}")
    return seconds
