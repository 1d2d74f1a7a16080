"""Where the engine's processes look for modules: never in the current folder.

Python puts that folder first for `-m` and `-c`, which is how Spark and multiprocessing start processes. A
`uuid.py` in it, from anyone who can write there, would run as the user who starts the engine there.
"""

from __future__ import annotations

# Modules that Python has imported by itself: more must not be read before the path is safe.
import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
_INSTALLED = ("site-packages", "dist-packages")


def leave_out_current_folder() -> None:
    """Take the current folder off this process's import path, where `python -m` has put it."""
    if not sys.flags.safe_path and sys.path[:1] in ([""], [_current_folder()]):
        del sys.path[0]


def same_engine() -> dict[str, str]:
    """Environment variables for a Python that is to import this very engine, and nothing from its folder."""
    variables = {"PYTHONSAFEPATH": "1"}
    # An installed engine is found without help, and its folder must not come before Python's own modules.
    if os.path.basename(_ROOT) not in _INSTALLED:  # noqa: PTH119
        paths = (_ROOT, os.environ.get("PYTHONPATH"))
        variables["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return variables


def _current_folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return None
