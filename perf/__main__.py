"""`python -m perf`: all cases or those named. `decode` and `profile` are tools for making it faster."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from perf.case import CaseResult
from perf.cases import CASES, Settings
from perf.machine import machine_facts
from perf.report import json_report, markdown_report, text_report, write_between_markers
from perf.runner import run_case
from tests.servers import UnavailableError

_ROOM = Path(__file__).parent
_README = _ROOM.parent / "README.md"


def main(arguments: Sequence[str]) -> int:
    """Run a command; returns its exit status: 0, 1 where the engine failed, 2 for wrong arguments."""
    from perf import decode, profiling

    tools = {"decode": decode.main, "profile": profiling.main}
    try:
        if arguments and arguments[0] in tools:
            return tools[arguments[0]](arguments[1:])
        return _measure(arguments)
    except UnavailableError as error:
        print(f"perf: {error}", file=sys.stderr)
        return 1


def _measure(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    work = _ROOM / "work"
    work.mkdir(exist_ok=True)
    names = options.cases or list(CASES)
    full = options.scale == 1 and options.peers is None
    with tempfile.TemporaryDirectory(dir=work) as folder:
        settings = Settings(options.scale, options.workers, Path(folder))
        cases = [CASES[name](settings) for name in names]
        if options.peers is not None:
            cases = [case.only_with(options.peers.split(",")) for case in cases]
        results = [run_case(case, options.repeat, _tell) for case in cases]
    machine = machine_facts()
    kept: Path = options.results or (_ROOM / "results" if full else work)
    kept.mkdir(parents=True, exist_ok=True)
    for result in results:
        print(f"\n{text_report(result)}")
        text = json_report(result, machine, {"scale": options.scale, "workers": options.workers})
        (kept / f"{result.name}.json").write_text(text + "\n")
    if options.readme or (full and set(names) == set(CASES)):
        write_between_markers(_README, markdown_report(results, machine, options.repeat))
    return 0 if all(_engine_ran(result) for result in results) else 1


def _engine_ran(result: CaseResult) -> bool:
    return bool(result.engine.runs)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf",
        description="Measure the engine beside other programs. Two tools have arguments of their own: "
        "`decode` (one decoder on one core) and `profile` (where the engine's time goes).",
    )
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all of them if left out"
    )
    parser.add_argument(
        "--workers", type=int, default=0, help="decoder processes; by default the engine's choice"
    )
    parser.add_argument("--peers", help="only those with one of these in their names, separated by commas")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each peer [3]")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the workloads [1]")
    parser.add_argument("--results", type=Path, help="folder for the JSON [perf/results at scale 1]")
    parser.add_argument(
        "--readme", action="store_true", help="put the tables into the README, as a full run does"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
