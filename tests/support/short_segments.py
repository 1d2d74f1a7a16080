"""The command with short segments and a care of old data that is always due, in all of its processes.

As a script it is `binlog-engine`. Each process that it starts imports it as its main module, so that the
values hold there, too. A program that reads such an output sets `COMMITS_PER_SEGMENT` itself.
"""

from __future__ import annotations

import sys

from engine.__main__ import main
from engine.commands import maintenance
from engine.output import log_files

COMMITS_PER_SEGMENT = 10
COMMAND = (sys.executable, "-P", __file__)
"""For `EngineRun`."""

if __name__ in ("__main__", "__mp_main__"):
    log_files.COMMITS_PER_SEGMENT = COMMITS_PER_SEGMENT
    maintenance.CHECK_SECONDS = 0.5
    maintenance.RETAIN_SECONDS = 2.0

if __name__ == "__main__":
    sys.exit(main())
