"""What keeps the start of a query short: Spark starts Python processes for it, which import little."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path
from zipfile import ZipFile

from tests import PROJECT

UNPACK = PROJECT / "tests" / "setup" / "spark_modules.sh"
PLANS = (
    "import pyspark.sql.streaming.python_streaming_source_runner; before = set(sys.modules)\n"
    "import engine.spark.source, engine.spark.stream; added = set(sys.modules) - before\n"
)
"""Imports what Spark's process of a streaming query has before it receives the source, then the source."""


def _printed(program: str, *path: Path) -> str:
    lines = ["import sys", f"sys.path[:0] = {[str(entry) for entry in path]}", program]
    finished = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=120, check=True
    )
    return finished.stdout.strip()


def test_processes_that_only_plan_import_no_kernels_and_no_functions_of_arrow() -> None:
    # numpy is not in the list, since pyarrow imports it, and PySpark imports that.
    large = "sorted({'numba', 'pandas', 'pyarrow.compute', 'zmq'} & set(sys.modules))"
    assert _printed(f"import engine.spark.source, engine.spark.stream; print({large})") == "[]"


def test_processes_that_only_plan_import_no_other_rooms_and_no_reads_with_current_columns() -> None:
    rooms = [f"engine.{name}." for name in ("archive", "decode", "kernels", "lakehouse", "net", "sink")]
    reads = [f"engine.spark.{name}" for name in ("definition_types", "eras", "log_view", "table_rows")]
    found = f"sorted(name for name in added if name.startswith({(*rooms, *reads)}))"
    assert _printed(f"{PLANS}print({found}, 'engine.spark.stream' in added)") == "[] True"


def test_the_source_adds_to_the_modules_of_spark_only_what_reads_the_log() -> None:
    packages = set(_printed(f"{PLANS}print(*{{name.partition('.')[0] for name in added}})").split())
    # typing_extensions is imported by msgspec.
    allowed = {"engine", "msgpack", "msgspec", "numpy", "typing_extensions"}
    assert packages - sys.stdlib_module_names <= allowed


def test_archives_of_modules_become_folders_with_bytecode_once(tmp_path: Path) -> None:
    archive = tmp_path / "some.zip"
    with ZipFile(archive, "w") as file:
        file.writestr("package/__init__.py", "from package.part import NUMBER\n")
        file.writestr("package/part.py", "NUMBER = 41 + 1\n")
        file.writestr("package/tests/broken.py", "not Python")
    part = archive / "package" / "part.py"
    program = "import package.part; print(package.NUMBER, package.part.__file__)"
    assert _printed(program, archive) == f"42 {part}"
    for _ in range(2):
        subprocess.run([UNPACK, tmp_path, sys.executable], check=True)
        assert list(tmp_path.iterdir()) == [archive]
        assert Path(cache_from_source(str(part))).is_file()
        assert _printed(program, archive) == f"42 {part}"
    assert [path.name for path in (archive / "package" / "tests").iterdir()] == ["broken.py"]
