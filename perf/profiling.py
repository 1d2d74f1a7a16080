"""Where the engine's time goes: `python -m perf profile bulk`.

Two views. From inside: batcher and decoder in this process under cProfile; time in a compiled kernel counts
for the Python function that calls it. From outside, where Linux's `perf` is installed: a whole run with all
its processes, sampled, by process and library, so that kernel, Python and copies stand apart.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from perf.binlog import Binlog, binlog_of, served
from perf.decode import decode_passes
from perf.measurement import run_command
from perf.peers.engine import REPOSITORY, engine_command
from perf.workloads import WORKLOADS

_SAMPLES_PER_SECOND = "999"


def main(arguments: Sequence[str]) -> int:
    """The command line tool."""
    options = _parser().parse_args(arguments)
    binlog = binlog_of(WORKLOADS[options.workload], options.scale)
    print(f"batcher and decoder in one process, by their own time\n\n{_inside(binlog, options.lines)}")
    if shutil.which("perf"):
        print(f"a whole run, by process and library\n\n{_outside(binlog, options.workers, options.lines)}")
    else:
        print("for a whole run with all its processes install Linux's perf tool")
    return 0


def _inside(binlog: Binlog, lines: int) -> str:
    list(decode_passes(binlog.path, 1))
    profile = cProfile.Profile()
    profile.enable()
    list(decode_passes(binlog.path, 1))
    profile.disable()
    text = io.StringIO()
    pstats.Stats(profile, stream=text).strip_dirs().sort_stats("tottime").print_stats(lines)
    return text.getvalue()


def _outside(binlog: Binlog, workers: int, lines: int) -> str:
    with tempfile.TemporaryDirectory() as folder, served(binlog) as subject:
        out, report, samples = (Path(folder) / name for name in ("out", "report.json", "samples"))
        recording = ["perf", "record", "--quiet", "--freq", _SAMPLES_PER_SECOND, "--output", str(samples)]
        run_command(
            [*recording, "--", *engine_command(subject, out, workers, report)],
            environment={"MYSQL_PWD": subject.server.password, "PYTHONPATH": str(REPOSITORY)},
        )
        return "\n\n".join(_sampled(samples, by, lines) for by in ("comm", "comm,dso", "comm,dso,symbol"))


def _sampled(samples: Path, by: str, lines: int) -> str:
    command = ["perf", "report", "--stdio", "--input", str(samples), "--sort", by, "--percent-limit", "0.5"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listed = [line.rstrip(" -") for line in told.splitlines() if line and not line.startswith("#")]
    return "\n".join(listed[:lines])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m perf profile", description=__doc__.split("\n\n")[0])
    parser.add_argument("workload", nargs="?", default="bulk", choices=WORKLOADS, help="which binlog [bulk]")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the workload [1]")
    parser.add_argument("--workers", type=int, default=0, help="decoder processes of the whole run")
    parser.add_argument("--lines", type=int, default=25, help="of each table [25]")
    return parser
