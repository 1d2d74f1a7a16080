"""Runs a case: every peer once, then all of them again, so that what disturbs the machine disturbs all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from perf.case import Case, CaseResult, PeerResult
from perf.measurement import PeerError
from perf.peer import Peer

Subject = TypeVar("Subject")
Tell = Callable[[str], None]


def run_case(case: Case[Subject], repetitions: int, tell: Tell) -> CaseResult:
    """Measure every peer of the case `repetitions` times; `tell` hears how it goes.

    A peer that cannot be had, or fails, is left out from then on, with the reason. Raises UnavailableError
    where there is no server.
    """
    tell(f"{case.name}: {case.title}")
    results = {peer.name: PeerResult(peer.name, peer.remark) for peer in case.peers}
    for peer in case.peers:
        with _left_out_if_it_fails(results[peer.name], tell):
            peer.prepare()
    binlog = case.binlog()
    with case.offer(binlog) as subject:
        for peer in case.peers:
            if results[peer.name].skipped is None:
                with _left_out_if_it_fails(results[peer.name], tell):
                    peer.warm_up(subject)
        for repetition in range(repetitions):
            for peer in _rotated(case.peers, repetition):
                result = results[peer.name]
                if result.skipped is None:
                    with _left_out_if_it_fails(result, tell):
                        run = peer.measure(subject)
                        result.runs.append(run)
                        tell(f"  {peer.name}: {run.seconds:.3f} s")
    return CaseResult(case.name, case.title, case.group, binlog.rows, binlog.size, list(results.values()))


@contextmanager
def _left_out_if_it_fails(result: PeerResult, tell: Tell) -> Iterator[None]:
    try:
        yield
    except PeerError as error:
        result.runs.clear()
        result.skipped = str(error)
        tell(f"  {result.name}: skipped: {error}")


def _rotated(peers: Sequence[Peer[Subject]], by: int) -> Sequence[Peer[Subject]]:
    """Each round begins with another one, so that nobody always follows the same neighbour."""
    start = by % len(peers)
    return [*peers[start:], *peers[:start]]
