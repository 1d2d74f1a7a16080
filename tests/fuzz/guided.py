"""Fuzzing that coverage guides: `python -m tests.fuzz.guided --seconds 300`.

A damaged binlog that makes the engine do what none before did is kept, to be damaged further. What it did is
told by the pairs of lines of the engine's Python code that ran one after the other, and of the
compiled kernels by the errors that they gave. A case that fails or crashes is in the state file.
"""

from __future__ import annotations

import argparse
import faulthandler
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import engine
from engine.commands.compile_kernels import compile_kernels
from tests.fuzz.hostile import (
    CASE_SECONDS,
    STATE,
    Decoders,
    Source,
    check,
    damage,
    delivered,
    limit_memory,
    save,
    sources,
)

ENGINE = str(Path(engine.__file__).parent)
MOST_EVENTS = 40
"""Of a binlog that is kept, so that it does not grow without end."""

Tracer = Callable[[FrameType, str, Any], Any]


class Coverage:
    """The pairs of lines that ran one after the other, in all cases so far."""

    def __init__(self) -> None:
        self.pairs: set[tuple[str, int, int]] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Tracer | None:
        """For `sys.settrace`."""
        code = frame.f_code
        if not code.co_filename.startswith(ENGINE):
            return None
        name, last = code.co_filename, 0

        def line(frame: FrameType, event: str, argument: Any) -> Tracer:
            nonlocal last
            if event == "line":
                self.pairs.add((name, last, frame.f_lineno))
                last = frame.f_lineno
            return line

        return line


class Guide:
    """Tries cases, and keeps those that led to something new."""

    def __init__(self, seed: int, state: Path) -> None:
        self._rng = Random(seed)
        self._state = state
        self._decoders = Decoders()
        self.kept: list[Source] = []
        self.coverage = Coverage()
        self.reasons: set[str] = set()
        self.tried = self.refused = 0

    def step(self) -> None:
        """Try one case."""
        rng = self._rng
        known = self.kept if self.kept and rng.randrange(2) else sources()
        source = damage(rng, rng.choice(known))
        case = delivered(rng, source)
        save(case, self._state)
        before = len(self.coverage.pairs) + len(self.reasons)
        faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)
        sys.settrace(self.coverage)
        try:
            error = check(case, self._decoders)
        finally:
            sys.settrace(None)
            faulthandler.cancel_dump_traceback_later()
        self.tried += 1
        if error is not None:
            self.refused += 1
            self.reasons.add(re.sub(r"\d+", "#", error.partition(" at position ")[2]))
        if len(self.coverage.pairs) + len(self.reasons) > before and 1 < len(source.events) <= MOST_EVENTS:
            self.kept.append(source)


def main() -> None:
    """Try cases for so long."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--state", type=Path, default=STATE, help="the case under way, for tests.fuzz.hostile --repeat"
    )
    options = parser.parse_args()
    faulthandler.enable()
    compile_kernels()
    sources()
    limit_memory()
    guide = Guide(options.seed, options.state)
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        guide.step()
    options.state.unlink()
    print(
        f"{guide.tried} guided cases, {guide.refused} of them refused; {len(guide.kept)} kept: "
        f"{len(guide.coverage.pairs)} pairs of lines, {len(guide.reasons)} kinds of errors",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
