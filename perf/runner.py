"""Runs a case: every peer once, then all of them again, so that disturbances affect all peers alike."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from perf.case import Case, CaseResult, PeerResult
from perf.measurement import PeerError
from perf.peer import Peer
from tests.servers import UnavailableError

Subject = TypeVar("Subject")
Tell = Callable[[str], None]
_ENOUGH_SECONDS = 10
"""A peer that has taken longer in total is not run again: slow peers vary little."""
Contender = tuple[Peer[Subject], PeerResult]


def run_case(case: Case[Subject], repetitions: int, tell: Tell) -> CaseResult:
    """Measure every peer of the case `repetitions` times; `tell` is called with lines of progress.

    A peer that is not available or fails is skipped from then on, with the reason. If the case itself fails
    (for example because there is no server), all peers without runs are skipped.
    """
    tell(f"{case.name}: {case.title}")
    results = [PeerResult(peer.name, peer.remark) for peer in case.peers]
    contenders = list(zip(case.peers, results, strict=True))
    rows = size = 0
    try:
        for peer, result in contenders:
            with _left_out_if_it_fails(result, tell):
                peer.prepare()
        material = case.material()
        if material is not None:
            rows, size = material.rows, material.size
        with case.offer(material) as subject:
            _measure(case, subject, contenders, repetitions, tell)
    except Exception as error:
        reason = _reason(error)
        tell(f"  {case.name} failed: {reason}")
        for result in results:
            if not result.runs and result.skipped is None:
                result.skipped = reason
    for peer, _ in contenders:
        peer.clean_up()
    return CaseResult(case.name, case.title, case.group, rows, size, results, case.measures, case.compares)


def _measure(
    case: Case[Subject],
    subject: Subject,
    contenders: Sequence[Contender[Subject]],
    repetitions: int,
    tell: Tell,
) -> None:
    for peer, result in contenders:
        if result.skipped is None:
            with _left_out_if_it_fails(result, tell):
                peer.warm_up(subject)
    spared = contenders[1:] if case.compares else []
    most_seconds = {peer.name: _ENOUGH_SECONDS for peer, _ in spared}
    spent: Counter[str] = Counter()
    for repetition in range(repetitions):
        for peer, result in _rotated(contenders, repetition):
            often_enough = repetition >= (peer.most_runs or repetitions)
            long_enough = spent[peer.name] > most_seconds.get(peer.name, math.inf)
            if result.skipped or often_enough or long_enough:
                continue
            begun = time.monotonic()
            with _left_out_if_it_fails(result, tell):
                run = peer.measure(subject)
                result.runs.append(run)
                tell(f"  {peer.name}: {run.seconds:.3f} s")
            spent[peer.name] += round(time.monotonic() - begun)


@contextmanager
def _left_out_if_it_fails(result: PeerResult, tell: Tell) -> Iterator[None]:
    """Skip the peer on any exception: a bug in one peer's harness must not end the other measurements."""
    try:
        yield
    except Exception as error:
        result.runs.clear()
        result.skipped = _reason(error)
        tell(f"  {result.name}: skipped: {result.skipped}")


def _reason(error: Exception) -> str:
    expected = isinstance(error, PeerError | UnavailableError)
    return str(error) if expected else f"{type(error).__name__}: {error}"


def _rotated(contenders: Sequence[Contender[Subject]], by: int) -> Sequence[Contender[Subject]]:
    """The contenders in an order that starts with a different one in each round."""
    start = by % len(contenders)
    return [*contenders[start:], *contenders[:start]]
