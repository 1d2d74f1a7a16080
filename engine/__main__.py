"""The entry point of the command, both installed and as `python -m engine`.

Before it imports anything else it takes the current folder off the import path, makes the standard streams
usable, and records signals that arrive during start-up.
"""

from __future__ import annotations

import sys

from engine.pipeline.import_path import leave_out_current_folder


def main() -> int:
    """Run the command that the arguments name; returns its exit code."""
    leave_out_current_folder()
    from engine.pipeline.standard_streams import prepare_standard_streams

    prepare_standard_streams()
    from engine.pipeline.stop_signals import note_stop_signals

    note_stop_signals()
    from engine import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
