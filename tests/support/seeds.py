"""The seeds of tests that choose at random: fixed ones, so that only a change can make a test fail.

`BINLOG_ENGINE_RANDOM_TESTS=1` asks for new ones in each run, which find what the fixed ones do not.
"""

from __future__ import annotations

import os
from random import SystemRandom

RANDOM_TESTS = os.environ.get("BINLOG_ENGINE_RANDOM_TESTS") == "1"


def chosen_seed(fixed: int) -> int:
    """The fixed seed, or a new one where random tests are asked for; a failing test shows it."""
    seed = SystemRandom().randrange(1 << 32) if RANDOM_TESTS else fixed
    print(f"seed {seed}")
    return seed
