"""No process of the engine imports a module from the current folder, which another user may control."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from engine.binlog.samples import sample_binlogs
from engine.output.reader import Changes
from tests.support.engine_run import COMMAND, Ended, EngineRun, wait_until

MODULES = (
    *("types", "contextlib", "signal", "argparse", "uuid", "queue"),
    *("zmq", "numpy", "pyarrow", "pyspark"),
    "engine.__init__",
)
TAKEN_BY_PYTHON = ("types", "contextlib", "engine.__init__")
"""What `python -m engine` may import from there before it comes to the engine."""
SAMPLE = str(sample_binlogs()[0])
PLAIN = {"PYTHONSAFEPATH": "", "PYTHONPATH": ""}


class HostileFolder:
    """A folder of modules that leave a mark when they are imported."""

    def __init__(self, path: Path, names: Iterable[str]) -> None:
        self.path = path
        self._marks = path / "marks"
        self._marks.mkdir(parents=True)
        for name in names:
            module = path.joinpath(*name.split(".")).with_suffix(".py")
            module.parent.mkdir(exist_ok=True)
            module.write_text(f"open({str(self._marks / name)!r}, 'w').close()\n")

    def marks(self) -> list[str]:
        return sorted(mark.name for mark in self._marks.iterdir())

    def start(self, *arguments: str, command: Sequence[str] = (COMMAND,)) -> EngineRun:
        environment = {**PLAIN, "PYTHONUNBUFFERED": "1"}
        return EngineRun(
            list(arguments), self.path, environment=environment, command=command, folder=self.path
        )

    def run(self, *arguments: str, command: Sequence[str] = (COMMAND,)) -> Ended:
        with self.start(*arguments, command=command) as engine:
            ended = engine.wait(240)
        assert ended.status == 0, ended.stderr
        assert "Traceback" not in ended.stderr
        return ended


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ([COMMAND], MODULES),
        ([sys.executable, "-P", "-m", "engine"], MODULES),
        ([sys.executable, "-m", "engine"], [name for name in MODULES if name not in TAKEN_BY_PYTHON]),
    ],
    ids=["binlog-engine", "python -P -m engine", "python -m engine"],
)
def test_decode_and_status(command: list[str], names: list[str] | tuple[str, ...], tmp_path: Path) -> None:
    folder = HostileFolder(tmp_path, names)
    folder.run("decode", SAMPLE, "--out", "out", command=command)
    assert Changes(tmp_path / "out").read("shop", "orders").num_rows > 0
    assert "shop.orders" in folder.run("status", "out", command=command).stdout
    assert folder.marks() == []


def test_serve_and_run(tmp_path: Path) -> None:
    folder = HostileFolder(tmp_path, MODULES)
    with folder.start("serve", SAMPLE) as server:
        address = wait_until(lambda: re.search(r"on 127\.0\.0\.1:(\d+)", server.stdout), "address")
        source = ("--host=127.0.0.1", f"--port={address[1]}", "--user=repl")
        folder.run("run", *source, "--stop-at-end", "--out=out")
        assert server.stop().status == 0
    assert Changes(tmp_path / "out").read("shop", "orders").num_rows > 0
    assert folder.marks() == []


@pytest.mark.spark
@pytest.mark.slow
def test_demo(tmp_path: Path) -> None:
    folder = HostileFolder(tmp_path, MODULES)
    assert "the query: spark.readStream" in folder.run("demo").stdout
    assert folder.marks() == []


def test_children_use_the_engine_of_the_command(tmp_path: Path) -> None:
    """A second checkout, started from its own folder, is not mixed with the installed one."""
    other = tmp_path / "engine"
    installed = Path(sys.modules["engine"].__path__[0])
    other.symlink_to(installed)
    program = (
        "from engine.pipeline import fork_server\n"
        # Kernels of another checkout would have to be compiled first.
        "fork_server._PRELOADED = ['engine.pipeline.fork_server_life', 'engine.errors']\n"
        "report = 'import engine; print(engine.__file__, flush=True)'\n"
        "if __name__ == '__main__':\n"
        "    exec(report)\n"
        "    fork_server.start_process(exec, (report,), 'child').join()\n"
    )
    (tmp_path / "program.py").write_text(program)
    with EngineRun(
        ["program.py"], tmp_path, environment=PLAIN, command=[sys.executable], folder=tmp_path
    ) as run:
        ended = run.wait(120)
    assert ended.stdout.split() == [str(other / "__init__.py")] * 2, ended.stderr
