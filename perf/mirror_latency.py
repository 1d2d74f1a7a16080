"""How late a Delta table is: from a commit on the server until a round of the mirror has brought its rows.

The server is under a steady load of one-row transactions, the engine follows it, and the mirror goes on in
rounds, in a Spark process of its own. Every change row of the measured period counts, which begins when some
rounds are done.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.output.reader import Changes
from perf.binlog import live_server
from perf.case import Case, Settings, no_material
from perf.latency import Load, commit_times, followed, percentiles
from perf.measurement import Measurement, PeerError
from perf.mirror import spark_with_delta
from perf.peer import Peer
from perf.workloads import TRANSACTIONS
from tests.servers import Server
from tests.support.lakehouse import session

_RATE = 200.0
"""Transactions per second."""
_INTERVAL = 0.2
"""Seconds between commits of the engine."""
_EVERY = (0.0, 10.0)
"""Seconds from the beginning of a round to that of the next one, if it does not take longer."""
_SECONDS = 60.0
"""The measured period at scale 1."""
_WARM_UP_ROUNDS = 3


def mirror_latency_case(settings: Settings) -> Case[Server]:
    """The case with rounds as often as they can be, and as often as the command's default says."""
    return Case(
        name="mirror-latency",
        title=f"one-row transactions at {_RATE:.0f}/s, from the commit on the server to a Delta table",
        group="mirror: latency",
        material=no_material,
        offer=lambda _: live_server(TRANSACTIONS),
        peers=[Mirrored(settings, every) for every in _EVERY],
        measures="p99 s",
        compares=False,
    )


class Mirrored(Peer[Server]):
    """The engine and a mirror, following a server."""

    # One run has thousands of transactions.
    most_runs = 1

    def __init__(self, settings: Settings, every: float) -> None:
        self.name = f"a round every {every:g} s" if every else "round after round"
        self._work = settings.work
        self._every = every
        self._seconds = max(3.0, _SECONDS * settings.scale)

    def measure(self, subject: Server) -> Measurement:
        with (
            tempfile.TemporaryDirectory(dir=self._work) as place,
            spark_with_delta(Path(place)) as lake,
            followed(subject, self._work, _INTERVAL) as (engine, out),
        ):
            with Load(subject, _RATE):
                engine.wait_for_commits(1)
                rounds = lake.call(_rounds, out, lake.target, self._every, self._seconds)
            engine.catch_up(subject)
            latencies = _latencies(out, rounds, self._seconds)
        return percentiles(latencies, self._seconds)


class _Ended(Exception):
    """The measured period is over, and its last rows are in the target."""


def _rounds(out: Path, target: str, every: float, seconds: float) -> list[tuple[int, float]]:
    """The commit that each round reached, and when; those of the warm-up first."""
    from engine.lakehouse import Mirror, Round

    done: list[tuple[int, float]] = []

    def note(one: Round) -> None:
        done.append((one.commit, time.time()))
        # The rows of a commit are a little older than the commit.
        if len(done) > _WARM_UP_ROUNDS and one.time_us / 1e6 > done[_WARM_UP_ROUNDS - 1][1] + seconds + 2:
            raise _Ended

    mirror = Mirror(session(), out, target)
    try:
        mirror.run(every=every, report=note)
    except _Ended:
        return done
    raise AssertionError("a mirror without an end does not return")


def _latencies(out: Path, rounds: Sequence[tuple[int, float]], seconds: float) -> np.ndarray:
    """The latency of every row that was committed on the server in the measured period."""
    changes = Changes(out)
    begun = rounds[_WARM_UP_ROUNDS - 1][1]
    found = []
    for (before, _), (last, seen) in itertools.pairwise(rounds):
        for commit in range(before + 1, last + 1):
            committed = commit_times(changes, commit)
            found.append(seen - committed[(committed >= begun) & (committed < begun + seconds)])
    latencies = np.concatenate(found)
    if not len(latencies):
        raise PeerError("no change row came in the measured period")
    return latencies
