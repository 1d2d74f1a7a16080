"""`python -m tests.fuzz.suite_snapshots --server mysql-9.7 FOLDER`: snapshots of a server's own tests.

The statements are those of `tests.fuzz.suite`. At some moments of each file an engine begins an output with a
snapshot of all tables, and follows what changes up to the next statement that defines one; its rows are
compared with those of SELECT.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.servers import get_server
from tests.support.suite_files import suite_files, suite_parser
from tests.support.suite_snapshots import SuiteSnapshots


def main() -> int:
    """Exit code 1 if the engine stopped, or if rows were wrong."""
    parser = suite_parser(main.__doc__)
    parser.add_argument("--moments", type=int, default=3, help="of snapshots in each file")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    options = parser.parse_args()
    paths = suite_files(options.folder, options.files)
    with get_server(options.server, {}) as server, tempfile.TemporaryDirectory() as folder:
        snapshots = SuiteSnapshots(
            server,
            Path(folder) / "out",
            seconds=options.seconds,
            moments=options.moments,
            seed=options.seed,
        )
        return snapshots.findings.report(paths, snapshots.compare_file)


if __name__ == "__main__":
    sys.exit(main())
