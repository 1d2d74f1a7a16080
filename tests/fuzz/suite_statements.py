"""`python -m tests.fuzz.suite_statements --server mysql-9.7 FOLDER`: which rows statements change.

The statements are those of `tests.fuzz.suite`, in sessions that log statements instead of rows. The tables
that each INSERT, REPLACE, UPDATE and DELETE has changed, by their checksums, must be among those that the
model reads from what was logged. What triggers, foreign keys and views change besides differs, as documented.
"""

from __future__ import annotations

import sys

from tests.servers import get_server
from tests.support.suite_files import suite_files, suite_parser
from tests.support.suite_statements import SuiteStatements


def main() -> int:
    """Exit code 1 if a statement changed a table that was not named."""
    options = suite_parser(main.__doc__).parse_args()
    with get_server(options.server, {}) as server:
        statements = SuiteStatements(server, seconds=options.seconds)
        return statements.findings.report(suite_files(options.folder, options.files), statements.compare_file)


if __name__ == "__main__":
    sys.exit(main())
