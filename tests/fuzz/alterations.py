"""`python -m tests.fuzz.alterations --server mysql-9.7`: what ALTER TABLE does to the rows of tables."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random, SystemRandom

from tests.servers import EVERY_FLAVOR, get_server
from tests.support import additions, conversions

_AT_ONCE = 200
"""Tables of one output."""


def main() -> int:
    """Alter as many tables as wanted, half of them by ADD, the others by MODIFY.

    Exit code 1 if values are others than the engine takes them for.
    """
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--server", choices=EVERY_FLAVOR, default="mysql-9.7")
    parser.add_argument("--tables", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(1_000_000))
    options = parser.parse_args()
    print(f"{options.server}, seed {options.seed}", flush=True)
    random, added, converted = Random(options.seed), Counter[str](), Counter[str]()
    with get_server(options.server, {}) as server:
        while added.total() + converted.total() < options.tables:
            with tempfile.TemporaryDirectory() as folder:
                more = [additions.chosen(options.server, random) for _ in range(_AT_ONCE)]
                others = [conversions.chosen(options.server, random) for _ in range(_AT_ONCE)]
                one = additions.add(server, more, Path(folder) / "added")
                other = conversions.convert(server, others, Path(folder) / "converted")
            added += one.counts
            converted += other.counts
            for found in (one, other):
                for line in (*found.differences, *(f"unsure: {doubt}" for doubt in found.doubts)):
                    print(line, flush=True)
    print(f"ADD: {dict(added)}\nMODIFY: {dict(converted)}")
    return 1 if (added + converted).keys() & {"wrong", "stopped"} else 0


if __name__ == "__main__":
    sys.exit(main())
