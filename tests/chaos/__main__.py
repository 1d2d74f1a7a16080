"""`python -m tests.chaos`: trials on real servers, and a table of what each kind of fault led to."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from tests.chaos.faults import FAILING_CALLS, FAULTS, OWN_DISK
from tests.chaos.own_disk import own_disk
from tests.chaos.planted import PLANTED, command
from tests.chaos.trial import SAFE, Happening, Trial
from tests.chaos.violation import Violation
from tests.servers import EVERY_FLAVOR, get_server
from tests.support.preload import MISSING_COMPILER, can_compile

SERVERS = ("mysql-9.7", "mysql-8.0", "mysql-5.6", "mariadb-11.8")


def main(arguments: Sequence[str]) -> int:
    """Returns 0 if no trial found anything; with `--planted`, if each trial did."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--server", nargs="*", default=SERVERS, choices=EVERY_FLAVOR)
    parser.add_argument("--faults", type=int, default=len(FAULTS), help="per server [each kind once]")
    parser.add_argument("--minutes", type=float, default=math.inf, help="per server: then no fault begins")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="[the time]")
    parser.add_argument("--rows", type=int, default=2000, help="the most rows of a transaction [2000]")
    parser.add_argument("--planted", nargs="*", metavar="NAME", help="faults in the engine: all, or these")
    given = parser.parse_args(arguments)
    print(f"seed {given.seed}", flush=True)
    if given.planted is not None:
        names = given.planted or PLANTED
        return sum(not _is_noticed(name, given.server[0], given.seed) for name in names)
    return sum(not _holds(flavor, given) for flavor in given.server)


def _holds(flavor: str, given: argparse.Namespace) -> bool:
    """One trial; whether everything held."""
    with own_disk() as (folder, has_disk), get_server(flavor, SAFE) as server:
        left_out = dict(_left_out(has_disk))
        names = [name for name in FAULTS if name not in left_out]
        trial = Trial(server, folder / "out", seed=given.seed, names=names, most_rows=given.rows)
        try:
            report = trial.run(given.faults, 60 * given.minutes)
        except Violation as violation:
            print(f"{flavor}, after {[each.fault for each in trial.report.happenings][-3:]}: {violation!r}")
            return False
    written = f"{report.transactions} transactions, {report.rows} rows"
    faults = len(report.happenings)
    print(f"{flavor}: {faults} faults, {written}, {report.commits} commits, nothing lost or doubled")
    ends = ", ".join(f"{number} {end}" for end, number in report.snapshots.most_common())
    print(f"snapshots of tables: {ends}")
    print("\n".join(_table(report.happenings)))
    for name, reason in left_out.items():
        print(f"{name:36} not done: {reason}")
    sys.stdout.flush()
    return True


def _left_out(has_disk: bool) -> Iterator[tuple[str, str]]:
    """The faults that cannot be done here, with the reason."""
    if not has_disk:
        yield from ((name, "only root can mount a file system") for name in sorted(OWN_DISK))
    if not can_compile():
        yield from ((name, MISSING_COMPILER) for name in sorted(FAILING_CALLS))


def _is_noticed(name: str, flavor: str, seed: int) -> bool:
    with tempfile.TemporaryDirectory() as folder, get_server(flavor, SAFE) as server:
        out = Path(folder) / "out"
        trial = Trial(
            server,
            out,
            seed=seed,
            names=_DISTURBANCES,
            most_rows=_DIVIDED_ROWS,
            command=command(name),
            flow_seconds=60.0,
            # On a busy machine an engine with short ones connects again so often that it hides a stale wait.
            heartbeat_seconds=2.0,
        )
        try:
            trial.run(4 * len(_DISTURBANCES))
        except Violation as violation:
            print(
                f"{name}: noticed after {len(trial.report.happenings)} faults: {violation}"[:300], flush=True
            )
            return True
    print(f"{name}: NOT noticed", flush=True)
    return False


_DIVIDED_ROWS = 40_000
"""Transactions of up to so many rows, which are more than a batch."""
_DISTURBANCES = (
    "binlog-engine asked to end",
    "all killed",
    "second engine",
    "server killed",
    "dump killed",
    "EIO: fsync of a file",
    "short writes",
    "clock an hour back",
    "clock an hour back, then no work",
)
"""Enough to bring each planted fault to light."""


def _table(happenings: Sequence[Happening]) -> Iterator[str]:
    """A line per kind of fault: how often, how often the engine ended, the seconds until all was there."""
    kinds = defaultdict(list)
    for each in happenings:
        kinds[each.fault].append(each)
    yield f"{'fault':36} {'times':>5} {'ended':>5} {'median s':>9} {'most s':>7}"
    for name, of_kind in sorted(kinds.items()):
        seconds = [each.seconds for each in of_kind]
        ended = sum(each.outcome != "went on" for each in of_kind)
        yield f"{name:36} {len(of_kind):5} {ended:5} {median(seconds):9.1f} {max(seconds):7.1f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
