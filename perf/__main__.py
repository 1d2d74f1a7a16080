"""`python -m perf`: measures all or some cases. `decode`, `profile` and `report` are further tools."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from perf import decode, profiling, publish
from perf.case import Settings
from perf.cases import CASES
from perf.machine import machine_facts, machine_name
from perf.records import Record
from perf.report import text_figures, text_report
from perf.runner import run_case
from tests.servers import UnavailableError

_FOLDER = Path(__file__).parent
_TOOLS = {"decode": decode.main, "profile": profiling.main, "report": publish.main}
_QUICK_SCALE = 0.05


def main(arguments: Sequence[str]) -> int:
    """Run a command; returns its exit status: 0, 1 if the engine failed, 2 for wrong arguments."""
    # Every process measures the source tree that contains the harness.
    os.environ["PYTHONPATH"] = str(_FOLDER.parent)
    # An installed engine comes with bytecode; here the first run writes it.
    os.environ["PYTHONDONTWRITEBYTECODE"] = ""
    try:
        if arguments and arguments[0] in _TOOLS:
            return _TOOLS[arguments[0]](arguments[1:])
        return _measure(_parser().parse_args(arguments))
    except UnavailableError as error:
        print(f"perf: {error}", file=sys.stderr)
        return 1


def _measure(options: argparse.Namespace) -> int:
    scale = options.scale or (_QUICK_SCALE if options.quick else 1.0)
    repeat = options.repeat or (1 if options.quick else 3)
    full = scale == 1 and options.peers is None
    work = _FOLDER / "work"
    work.mkdir(exist_ok=True)
    machine = machine_facts(work)
    results_folder: Path = options.results or (publish.RESULTS if full else work)
    kept = results_folder / machine_name(machine)
    chosen = {"scale": scale, "workers": options.workers, "repeat": repeat}
    begun = time.monotonic()
    results = []
    with tempfile.TemporaryDirectory(dir=work) as folder:
        settings = Settings(scale, options.workers, Path(folder))
        for name in options.cases or CASES:
            case = CASES[name](settings)
            if options.peers is not None:
                case = case.only_with(options.peers.split(","))
            result = run_case(case, repeat, _tell)
            Record(result, machine, chosen).write(kept)
            print(f"\n{text_report(result)}\n", flush=True)
            results.append(result)
    print(text_figures(results))
    if options.publish or (full and len(results) == len(CASES)):
        publish.publish(results_folder)
        _profile(options.workers)
    _tell(f"{len(results)} cases in {(time.monotonic() - begun) / 60:.1f} minutes; {kept}")
    return 0 if all(result.engine.runs for result in results) else 1


def _profile(workers: int) -> None:
    """Write the profiles of all workloads that can be profiled into docs/performance.md."""
    for name in profiling.PROFILED:
        try:
            processes = profiling.profile_run(name, workers)
        except Exception as error:
            _tell(f"no profile of {name}: {error!r}")
        else:
            profiling.write_profile(name, processes)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _case(name: str) -> str:
    if name not in CASES:
        raise argparse.ArgumentTypeError(f"there is no case {name}; the cases are {', '.join(CASES)}")
    return name


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf",
        description="Measure the engine next to other programs. Three tools have their own arguments: "
        "`decode` (one decoder on one core), `profile` (where the engine spends its time) and `report` "
        "(tables and plots of the results).",
    )
    parser.add_argument("cases", nargs="*", type=_case, metavar="CASE", help=f"of {', '.join(CASES)} [all]")
    parser.add_argument("--workers", type=int, default=0, help="decoder processes [the engine's default]")
    parser.add_argument("--peers", help="only peers whose names contain one of these, separated by commas")
    parser.add_argument("--repeat", type=int, help="runs of each peer [3]")
    parser.add_argument("--scale", type=float, help="size of the workloads [1]")
    parser.add_argument(
        "--quick", action="store_true", help=f"--repeat 1 and --scale {_QUICK_SCALE}, unless these are given"
    )
    parser.add_argument(
        "--results", type=Path, help="has a folder of JSON for each machine [perf/results at scale 1]"
    )
    parser.add_argument(
        "--publish",
        action="store_true",
        help="write tables and plots into the repository, as a full run does",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
