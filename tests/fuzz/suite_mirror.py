"""`python -m tests.fuzz.suite_mirror --server mysql-9.7 --to delta FOLDER`: targets of a server's own tests.

The statements are those of `tests.fuzz.suite`. At some moments of each file an engine reads what they logged,
a mirror keeps the tables in a lakehouse, and their rows are compared with those of SELECT.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.support.suite_files import suite_files, suite_parser


def main() -> int:
    """Exit code 1 if rows were wrong, or an engine stopped."""
    # The mirror's process imports this module before it has its own version of PySpark.
    from tests.servers import get_server
    from tests.support.lakehouse import VERSIONS, Lakehouse
    from tests.support.suite_targets import SuiteTargets

    parser = suite_parser(main.__doc__)
    parser.add_argument("--to", choices=VERSIONS, default="delta")
    parser.add_argument("--moments", type=int, default=3, help="in each file, beside its end")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        get_server(options.server, {}) as server,
        Lakehouse(options.to, Path(folder) / "lake") as lake,
    ):
        out = Path(folder) / "out"
        targets = SuiteTargets(
            server, lake, out, seconds=options.seconds, moments=options.moments, seed=options.seed
        )
        paths = suite_files(options.folder, options.files)
        return targets.findings.report(paths, targets.compare_file)


if __name__ == "__main__":
    sys.exit(main())
