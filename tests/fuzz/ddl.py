"""`python -m tests.fuzz.ddl --server mysql-9.7`: random DDL, the model against a real server."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from random import SystemRandom

from tests.servers import EVERY_FLAVOR, NO_ROW_METADATA, get_server
from tests.support.ddl_comparison import Comparer

_FULL_METADATA = {"binlog_row_metadata": "FULL"}
_PIECE = 250
"""Statements between two reports of progress."""


def main() -> int:
    """Run as many statements as wanted; exit code 1 if the model was wrong."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--server", choices=EVERY_FLAVOR, default="mysql-9.7")
    parser.add_argument("--statements", type=int, default=10_000, help="that the server takes and logs")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(1_000_000))
    parser.add_argument(
        "--most-differences", type=int, default=1_000_000, help="stop after so many wrong ones"
    )
    options = parser.parse_args()
    print(f"{options.server}, seed {options.seed}", flush=True)
    settings = {} if options.server in NO_ROW_METADATA else _FULL_METADATA
    begun = time.monotonic()
    with get_server(options.server, settings) as server, Comparer(server, options.seed) as comparer:
        result = comparer.result
        shown = 0
        while result.executed.total() < options.statements and len(result.wrong) < options.most_differences:
            comparer.run(min(_PIECE, options.statements - result.executed.total()))
            for difference in result.differences[shown:]:
                print(difference, flush=True)
            shown = len(result.differences)
            print(f"{result.executed.total()} statements, {time.monotonic() - begun:.0f} s", file=sys.stderr)
    print(f"executed {result.executed.total()}: {dict(result.executed)}")
    print(f"refused {result.refused.total()}: {dict(result.refused)}")
    print(f"refused most often: {result.reasons.most_common(25)}")
    print(f"table maps compared: {result.table_maps}")
    found = comparer.earlier.found
    print(f"definitions before statements: {found[True]} found, {found[False]} not found")
    print(f"tables changed by refused statements: {result.unlogged}, tables not opened: {result.unusable}")
    print(f"unsure by kind: {Counter(difference.step.kind for difference in result.unsure)}")
    defaults = len(result.differences) - len(result.wrong) - len(result.unsure)
    counts = f"{len(result.wrong)} wrong, {len(result.unsure)} unsure, {defaults} with other defaults"
    print(f"{options.server} seed {options.seed}: {counts}")
    return 1 if result.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
