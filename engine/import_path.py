"""Where the engine's processes look for modules: never in the current folder.

Python puts that folder first for `-m` and `-c`, which is how Spark and multiprocessing start processes. Who
can write to it, with a `uuid.py` for instance, would have it run by the user who starts the engine there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress

import engine

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(engine.__file__)))  # noqa: PTH120, PTH100
_INSTALLED = ("site-packages", "dist-packages")


def leave_out_current_folder() -> None:
    """Take the current folder off this process's import path, where `python -m` has put it."""
    with suppress(FileNotFoundError):
        if not sys.flags.safe_path and sys.path[:1] in ([""], [os.getcwd()]):  # noqa: PTH109
            del sys.path[0]


def same_engine() -> Mapping[str, str]:
    """Environment variables for a Python that is to import this very engine, and nothing by accident."""
    variables = {"PYTHONSAFEPATH": "1"}
    # An installed engine is found without help, behind Python's own modules, where its folder belongs.
    if os.path.basename(_ROOT) not in _INSTALLED:  # noqa: PTH119
        paths = (_ROOT, os.environ.get("PYTHONPATH"))
        variables["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return variables
