"""Where the engine spends its time: `python -m perf profile bulk snapshot-bulk`.

There are two views. From outside, with Linux's `perf`: a whole run, by process and kind of work, with its
system calls; `--write` writes that into docs/performance.md. From inside (`--inside`): batcher and decoder in
this process under cProfile; the time in a compiled kernel counts for the Python function that calls it.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from perf.binlog import Binlog, binlog_of, served
from perf.decode import decode_passes
from perf.machine import machine_title, processor_facts
from perf.measurement import PeerError
from perf.peers.engine import ENVIRONMENT, REPOSITORY, engine_command
from perf.peers.snapshot_engine import snapshot_command
from perf.report import aligned, markdown, write_between_markers
from perf.sampling import KINDS, SAMPLES_PER_SECOND, ProcessSamples, sample
from perf.snapshots import CONNECTIONS, ROWS_BULK, ROWS_MANY, ROWS_WIDE
from perf.stored_rows import served_rows, stored_rows
from perf.workloads import WORKLOADS

PAGE = REPOSITORY / "docs" / "performance.md"
PROFILED = ("bulk", "transactions", "many", "snapshot-bulk")
SNAPSHOT_WORKLOADS = {f"snapshot-{workload.name}": workload for workload in (ROWS_BULK, ROWS_WIDE, ROWS_MANY)}
_MOST_CALLS = 5


def main(arguments: Sequence[str]) -> int:
    """The command line tool."""
    options = _parser().parse_args(arguments)
    for name in options.workloads or PROFILED:
        if options.inside:
            binlog = binlog_of(WORKLOADS[name], options.scale)
            print(
                f"batcher and decoder in one process, by their own time\n\n{_inside(binlog, options.lines)}"
            )
            continue
        try:
            processes = profile_run(name, options.workers, options.scale)
        except PeerError as error:
            print(f"perf: {error}; `--inside` needs no tool")
            return 1
        print(f"{name}: seconds of processor time by kind of work\n")
        print("\n".join([*aligned(_kinds(processes)), "", *aligned(_calls(processes)), ""]))
        for process, seen in processes.items():
            print(f"{process}, hottest:")
            hottest = seen.places.most_common(options.lines)
            print("".join(f"  {_seconds(samples)}  {place}\n" for place, samples in hottest))
        if options.write:
            write_profile(name, processes)
    return 0


def profile_run(name: str, workers: int = 0, scale: float = 1.0) -> dict[str, ProcessSamples]:
    """The samples of the engine's child processes in a whole run. Raises PeerError.

    `name`: of a workload whose binlog is read, or `snapshot-` and that of one whose rows are.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, report, samples = (Path(folder) / name for name in ("out", "report.json", "samples"))
        if name in SNAPSHOT_WORKLOADS:
            with served_rows(stored_rows(SNAPSHOT_WORKLOADS[name], scale)) as rows:
                command = snapshot_command(rows, out, workers, CONNECTIONS, report)
                found = sample(command, {**ENVIRONMENT, "MYSQL_PWD": rows.server.password}, samples)
        else:
            with served(binlog_of(WORKLOADS[name], scale)) as subject:
                command = engine_command(subject, out, workers, report)
                found = sample(command, {**ENVIRONMENT, "MYSQL_PWD": subject.server.password}, samples)
    roles = ("network", "snapshot", "decoder", "sink")
    return {name: found[name] for role in roles for name in sorted(found) if name.startswith(role)}


def write_profile(name: str, processes: Mapping[str, ProcessSamples]) -> None:
    """Write the tables into docs/performance.md."""
    machine = f"Measured on the {machine_title(processor_facts())}:"
    text = "\n".join([machine, "", *markdown(_kinds(processes)), "", *markdown(_calls(processes))])
    write_between_markers(PAGE, text, f"profile-{name}")


def _kinds(processes: Mapping[str, ProcessSamples]) -> list[list[str]]:
    """One line per kind of work that took time, one column per process."""
    kinds = [kind for kind in KINDS if any(seen.kinds[kind] > 1 for seen in processes.values())]
    lines = [["seconds", *processes]]
    lines += [[kind, *(_seconds(seen.kinds[kind]) for seen in processes.values())] for kind in kinds]
    lines.append(["in all", *(_seconds(seen.kinds.total()) for seen in processes.values())])
    return lines


def _seconds(samples: int) -> str:
    return f"{samples / SAMPLES_PER_SECOND:.3f}"


def _calls(processes: Mapping[str, ProcessSamples]) -> list[list[str]]:
    """The number of system calls of each process, and the most frequent ones."""
    lines = [["", "system calls", ""]]
    for name, seen in processes.items():
        most = ", ".join(f"{call} {count:,}" for call, count in seen.calls.most_common(_MOST_CALLS))
        lines.append([name, f"{seen.calls.total():,}", most])
    return lines


def _inside(binlog: Binlog, lines: int) -> str:
    list(decode_passes(binlog.path, 1))
    profile = cProfile.Profile()
    profile.enable()
    list(decode_passes(binlog.path, 1))
    profile.disable()
    text = io.StringIO()
    pstats.Stats(profile, stream=text).strip_dirs().sort_stats("tottime").print_stats(lines)
    return text.getvalue()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m perf profile", description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "workloads",
        nargs="*",
        metavar="WORKLOAD",
        help=f"of {', '.join([*WORKLOADS, *SNAPSHOT_WORKLOADS])} [{' '.join(PROFILED)}]",
    )
    parser.add_argument("--scale", type=float, default=1.0, help="size of the workload [1]")
    parser.add_argument("--workers", type=int, default=0, help="decoder processes of the whole run")
    parser.add_argument("--lines", type=int, default=12, help="of each list [12]")
    parser.add_argument("--inside", action="store_true", help="batcher and decoder under cProfile instead")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    return parser
