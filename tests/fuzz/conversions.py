"""`python -m tests.fuzz.conversions --server mysql-9.7`: values that ALTER TABLE changes, and the model."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random, SystemRandom

from tests.servers import EVERY_FLAVOR, get_server
from tests.support.conversions import chosen, convert

_AT_ONCE = 200
"""Tables of one output."""


def main() -> int:
    """Alter as many tables as wanted; exit code 1 if values changed that were said to be kept."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--server", choices=EVERY_FLAVOR, default="mysql-9.7")
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(1_000_000))
    options = parser.parse_args()
    print(f"{options.server}, seed {options.seed}", flush=True)
    random, counts = Random(options.seed), Counter[str]()
    with get_server(options.server, {}) as server:
        while counts.total() < options.tables:
            with tempfile.TemporaryDirectory() as folder:
                conversions = [chosen(options.server, random) for _ in range(_AT_ONCE)]
                found = convert(server, conversions, Path(folder) / "out")
            counts += found.counts
            for line in (*found.differences, *(f"unsure: {doubt}" for doubt in found.doubts)):
                print(line, flush=True)
    print(dict(counts))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
