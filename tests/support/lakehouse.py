"""A process with the version of PySpark that a table format needs, in which tests call functions.

A format has a package for one version of PySpark or two, and the tests themselves run with another one. So
the functions of this module run in a child process, which imports PySpark from a folder of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import pyarrow as pa

from tests.servers import UnavailableError
from tests.servers.cache import cached
from tests.support.engine_run import EngineRun

VERSIONS = {"delta": "4.2.0", "iceberg": "4.1.1"}
"""The version of PySpark for each format."""

T = TypeVar("T")


def pyspark_folder(version: str) -> Path:
    """A folder with that version of PySpark and nothing else, from the cache. Raises `UnavailableError`."""

    def install(folder: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
        done = subprocess.run([*command, f"pyspark=={version}"], capture_output=True, text=True)
        if done.returncode:
            raise UnavailableError(f"PySpark {version} cannot be installed: {done.stderr.strip()}")

    return cached(f"pyspark-{version}", install)


def environment_of(version: str) -> dict[str, str]:
    """The environment of a process that imports that version of PySpark."""
    return {**os.environ, **_QUICK_START, "PYTHONPATH": str(pyspark_folder(version))}


CATALOGUE = "lake"
"""The catalogue of a session whose targets are in one."""
_SQLITE = "org.xerial:sqlite-jdbc:3.50.3.0"


def _catalogue_arguments(to: str, place: Path) -> str:
    """What a user gives Spark for a catalogue that can rename tables, which is in the folder `place`."""
    from engine.lakehouse.formats import FORMATS

    catalogue = f"spark.sql.catalog.{CATALOGUE}"
    packages = [FORMATS[to].packages[VERSIONS[to].rpartition(".")[0]]]
    if to == "delta":
        settings = {"spark.sql.warehouse.dir": f"{place}/warehouse"}
    else:
        packages.append(_SQLITE)
        settings = {
            catalogue: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalogue}.type": "jdbc",
            f"{catalogue}.uri": f"jdbc:sqlite:{place}/catalogue.db",
            # The session that reads sees at once what those of the mirror have renamed.
            f"{catalogue}.cache-enabled": "false",
            f"{catalogue}.jdbc.busy_timeout": "60000",
            f"{catalogue}.jdbc.schema-version": "V1",
            f"{catalogue}.warehouse": f"{place}/warehouse",
        }
    given = " ".join(f"--conf {key}={value}" for key, value in settings.items())
    return f"--packages {','.join(packages)} {given} pyspark-shell"


def mirror_command(lake: Lakehouse, out: Path, *flags: str) -> EngineRun:
    """Start the `mirror` command for the format of `lake` and its targets."""
    arguments = ["mirror", str(out), "--to", lake.to, "--into", lake.target, *flags]
    # A session that is killed leaves its temporary files.
    environment = {**environment_of(VERSIONS[lake.to]), "SPARK_LOCAL_DIRS": str(lake.place)}
    return EngineRun(arguments, out, environment=environment)


_QUICK_START = {
    "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dspark.sql.codegen.wholeStage=false "
    "-Dspark.sql.codegen.factoryMode=NO_CODEGEN -Dspark.sql.adaptive.enabled=false"
}
"""Java and Spark compile as little as possible, since the tests have few rows and many statements."""


class PySparkProcess:
    """A Spark session of one version of PySpark in a process of its own, made there by a function."""

    def __init__(
        self, version: str, make_session: Callable[..., Any], *arguments: Any, environment: Mapping[str, str]
    ) -> None:
        """Raises `UnavailableError`."""
        self._is_used = False
        self._pool = ProcessPoolExecutor(
            1,
            multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(str(pyspark_folder(version)), environment, make_session, arguments),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_used:
            self.call(_end)
        self._pool.shutdown()

    def call(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """The result of a function of a module, in the process; `session()` is its Spark session there."""
        self._is_used = True
        return self._pool.submit(_called, function, arguments, named).result()


def plain_pyspark(version: str) -> PySparkProcess:
    """A process with the engine's source and no table format. Raises `UnavailableError`."""
    return PySparkProcess(version, _plain_session, environment=_QUICK_START)


class Lakehouse(PySparkProcess):
    """A Spark session of one format in a process of its own; targets are in the folder `place`.

    With `catalogue` they are known by their names in a catalogue that can rename them. With `compiles`, Java
    and Spark compile as they usually do, which pays from some thousand rows on.
    """

    def __init__(self, to: str, place: Path, *, catalogue: bool = False, compiles: bool = False) -> None:
        self.to = to
        self.place = place
        environment = {} if compiles else dict(_QUICK_START)
        if catalogue:
            # Delta's tables are in the session's own catalogue, which lasts as long as the process.
            self.target = ("" if to == "delta" else f"{CATALOGUE}.") + "{database}.{table}"
            environment["PYSPARK_SUBMIT_ARGS"] = _catalogue_arguments(to, place)
        else:
            self.target = f"{place}/{{database}}/{{table}}"
        super().__init__(VERSIONS[to], _lakehouse_session, to, self.target, environment=environment)

    def mirror(self, out: Path, *, until: int | None = None, **options: Any) -> dict[str, str]:
        """Bring the targets up to a commit, by default the last one; returns the tables set aside."""
        return self.call(_mirror, out, self.to, self.target, until, options)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of the target of `database.table`, without the `_seq`."""
        return self.call(_rows, self.to, self.target, table).to_pylist()

    def standings(self, out: Path) -> dict[str, tuple[int | None, str | None]]:
        """How far each target is, and why it is set aside."""
        return self.call(_standings, out, self.to, self.target)

    def exists(self, table: str) -> bool:
        """Whether there is a target of `database.table`."""
        return self.call(_exists, self.to, self.target, table)

    def columns(self, table: str) -> list[str]:
        """The names of the target's columns."""
        return self.call(_columns, self.to, self.target, table)

    def sql(self, statement: str) -> list[dict[str, Any]]:
        """The result of a statement; `{shop.orders}` in it is the target of that table."""
        return self.call(_sql, self.to, self.target, statement).to_pylist()


def _called(function: Callable[..., T], arguments: tuple[Any, ...], named: dict[str, Any]) -> T:
    """The function's result; its error as text, since Spark's errors cannot be passed on."""
    try:
        return function(*arguments, **named)
    except Exception as error:
        raise RuntimeError("".join(traceback.format_exception(error))[:20_000]) from None


_session: Any = None


def session() -> Any:
    """The process's Spark session."""
    return _session


def _begin(
    folder: str,
    environment: Mapping[str, str],
    make_session: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    global _session
    sys.path.insert(0, folder)
    os.environ |= {**environment, "PYTHONPATH": folder}
    _session = make_session(*arguments)
    _session.conf.set("spark.sql.session.timeZone", "UTC")


def _plain_session() -> Any:
    from engine.spark.local import local_session

    return local_session("tests")


def _lakehouse_session(to: str, target: str) -> Any:
    from engine.lakehouse.formats import FORMATS
    from engine.lakehouse.sessions import lakehouse_session
    from engine.lakehouse.target import TargetTemplate

    made = lakehouse_session("tests", FORMATS[to], TargetTemplate(target))
    if target.startswith(f"{CATALOGUE}."):
        # The first session sets the catalogue up, which two cannot do at the same time.
        made.sql(f"SHOW NAMESPACES IN {CATALOGUE}").collect()
    return made


def _end() -> None:
    _session.stop()


def _mirror(out: Path, to: str, target: str, until: int | None, options: dict[str, Any]) -> dict[str, str]:
    from engine.lakehouse import Mirror, MirrorOptions

    mirror = Mirror(_session, out, target, to=to, options=MirrorOptions(**options))
    mirror.run(once=True, until=until)
    return mirror.set_aside


def _standings(out: Path, to: str, target: str) -> dict[str, tuple[int | None, str | None]]:
    from engine.lakehouse import Mirror

    standings = Mirror(_session, out, target, to=to).standings()
    return {table: (standing.commit, standing.set_aside) for table, standing in standings.items()}


def _exists(to: str, target: str, table: str) -> bool:
    from engine.lakehouse.formats import FORMATS
    from engine.lakehouse.target import TargetTemplate
    from engine.schema.changes import TableName

    name = TableName(*table.split(".", 1))
    return FORMATS[to].table(_session, TargetTemplate(target), name).state() is not None


class Crash(BaseException):
    """Ends a mirror as a kill does: nothing of it catches this."""


def crashed_mirror(lake: Lakehouse, out: Path, statement: int) -> bool:
    """Run a mirror that crashes before its n-th write; returns whether it came that far."""
    return lake.call(_crashed, out, lake.to, lake.target, statement)


def _crashed(out: Path, to: str, target: str, statement: int) -> bool:
    """A write is a statement, or what a target does through its format's own classes."""
    from unittest.mock import patch

    from pyspark.sql import SparkSession

    from engine.lakehouse import Mirror, MirrorOptions
    from engine.lakehouse.delta import DeltaTable
    from engine.lakehouse.iceberg import IcebergTable

    left = statement

    def crashing(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                raise Crash
            return function(*arguments, **named)

        return call

    owner: Any = {"delta": DeltaTable, "iceberg": IcebergTable}[to]
    with (
        patch.object(SparkSession, "sql", crashing(SparkSession.sql)),
        patch.object(owner, "empty", crashing(owner.empty)),
        patch.object(owner, "write_note", crashing(owner.write_note)),
        patch.object(owner, "drop", crashing(owner.drop)),
    ):
        try:
            Mirror(_session, out, target, to=to, options=MirrorOptions(side_by_side=1)).run(once=True)
        except Crash:
            return True
    return False


def name_of(to: str, target: str, table: str) -> str:
    """The target of `database.table`, as SQL."""
    from engine.lakehouse.formats import FORMATS
    from engine.lakehouse.target import TargetTemplate
    from engine.schema.changes import TableName

    name = TableName(*table.split(".", 1))
    return FORMATS[to].table(_session, TargetTemplate(target), name).sql_name


def _rows(to: str, target: str, table: str) -> pa.Table:
    return _session.sql(f"SELECT * EXCEPT (_seq) FROM {name_of(to, target, table)}").toArrow()


def _columns(to: str, target: str, table: str) -> list[str]:
    return _session.table(name_of(to, target, table)).columns


def _sql(to: str, target: str, statement: str) -> pa.Table:
    import re

    found = re.sub(r"\{(\w+\.[^}]+)\}", lambda match: name_of(to, target, match[1]), statement)
    return _session.sql(found).toArrow()


def main() -> None:
    """Fetch PySpark and the packages of all formats, which Spark's resolver keeps, into the user's caches."""
    from engine.lakehouse.formats import FORMATS

    for to, version in VERSIONS.items():
        package = FORMATS[to].packages[version.rpartition(".")[0]]
        cached(f"package-{package.replace(':', '-')}", partial(_fetch, to))
        print(f"{to}: PySpark {version}, {package}", flush=True)


def _fetch(to: str, folder: Path) -> None:
    """Start a session, which fetches the package; the folder remembers that it is there."""
    with Lakehouse(to, folder) as lake:
        lake.call(_version)


def _version() -> str:
    return _session.version


if __name__ == "__main__":
    # Under its own name, by which the other process finds its functions.
    from tests.support import lakehouse

    lakehouse.main()
