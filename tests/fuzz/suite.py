"""`python -m tests.fuzz.suite --server mysql-9.7 FOLDER`: the statements of a server's own tests.

The folder has files of `mysqltest`, such as those of the Debian package `mariadb-test-data`. The statements
of each are executed in one session, whatever errors they lead to; what concerns the server itself, or only
reads, is left out. The model, which gets what the binlog contains, is compared with `information_schema`
after each statement, as in `tests.fuzz.ddl`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pymysql

from tests.servers import NO_ROW_METADATA, Server, get_server
from tests.support.ddl_comparison import Comparer, Difference
from tests.support.ddl_generator import Step
from tests.support.suite_files import (
    DATABASE,
    SETTINGS,
    drop_databases,
    start_again,
    steps_of,
    suite_files,
    suite_parser,
    user_databases,
    within,
)

_FULL_METADATA = {"binlog_row_metadata": "FULL"}


def play(server: Server, comparer: Comparer, steps: list[Step], seconds: float) -> None:
    """Execute the statements of one file in databases of its own."""
    drop_databases(server)
    comparer.take(Step("CREATE", f"CREATE DATABASE {DATABASE}"))
    comparer.begin_session(DATABASE, SETTINGS)
    comparer.databases = (DATABASE,)
    for step in within(seconds, steps):
        comparer.take(step)
    comparer.begin_session(DATABASE, ())
    comparer.databases = user_databases(server)
    comparer.compare_all(Step("END", "the end"))


def differences_in(
    server: Server, paths: list[Path], seconds: float, executed: Counter[str]
) -> Iterator[tuple[Path, Difference | str]]:
    """What differs in each file, or why the server was started again."""
    comparer = Comparer(server, seed=0)
    for path in paths:
        steps = steps_of(path)
        if not any(step.kind in ("CREATE", "ALTER") for step in steps):
            continue
        try:
            play(server, comparer, steps, seconds)
        except (RuntimeError, pymysql.err.MySQLError) as error:
            yield path, str(error)
            start_again(server)
            comparer = Comparer(server, seed=0)
        yield from ((path, difference) for difference in comparer.result.differences)
        executed += comparer.result.executed
        executed["files"] += 1
        executed["table maps"] += comparer.result.table_maps
        comparer.result = type(comparer.result)()


def main() -> int:
    """Exit code 1 if the model was wrong."""
    options = suite_parser(main.__doc__).parse_args()
    paths = suite_files(options.folder, options.files)
    settings = {} if options.server in NO_ROW_METADATA else _FULL_METADATA
    kinds: Counter[str] = Counter()
    executed: Counter[str] = Counter()
    with get_server(options.server, settings) as server:
        for path, found in differences_in(server, paths, options.seconds, executed):
            print(f"{path.name}: {found}", flush=True)
            kinds[found.kind if isinstance(found, Difference) else "started again"] += 1
    print(f"{options.server}: {dict(executed)}, {dict(kinds)}")
    return 1 if kinds["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
