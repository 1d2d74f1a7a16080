"""The import path of the engine's processes, which never contains the current folder.

Python puts that folder first for `-m` and `-c`, with which Spark and multiprocessing start processes. A
`uuid.py` in it, written by any user with access to the folder, would run with the engine's permissions.
"""

from __future__ import annotations

# Only modules that Python has already imported: no others may be imported before the path is safe.
import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
_INSTALLED = ("site-packages", "dist-packages")


def leave_out_current_folder() -> None:
    """Remove the current folder, which `python -m` has put there, from this process's import path."""
    if not sys.flags.safe_path and sys.path[:1] in ([""], [_current_folder()]):
        del sys.path[0]


def same_engine() -> dict[str, str]:
    """Environment variables for a Python process that imports this same engine, and no current folder."""
    variables = {"PYTHONSAFEPATH": "1"}
    # Python finds an installed engine, whose folder must not precede Python's own modules.
    if os.path.basename(_ROOT) not in _INSTALLED:  # noqa: PTH119
        paths = (_ROOT, os.environ.get("PYTHONPATH"))
        variables["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return variables


def _current_folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return None
