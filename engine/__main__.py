"""Where the command begins, installed or as `python -m engine`: what has to be done before all else.

It imports next to nothing, so that no module is looked for in the current folder, and no signal ends the
command out of order.
"""

from __future__ import annotations

import sys

from engine.pipeline.import_path import leave_out_current_folder


def main() -> int:
    """Run the command that the arguments name; returns its exit code."""
    leave_out_current_folder()
    from engine.pipeline.stop_signals import note_stop_signals

    note_stop_signals()
    from engine import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
