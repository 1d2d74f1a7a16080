"""`python -m tests.servers`: download and initialise everything that the tests use, ahead of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from . import FLAVORS, UnavailableError, get_server, historic_binlogs
from .object_store import object_store_program


def _prepare(name: str, prepare: Callable[[], str]) -> bool:
    begun = time.monotonic()
    try:
        result = prepare()
    except UnavailableError as error:
        print(f"{name}: not available: {error}", flush=True)
        return False
    print(f"{name}: {result} ({time.monotonic() - begun:.1f} s)", flush=True)
    return True


def _version(flavor: str) -> str:
    return get_server(flavor).installation.version


def _count_historic_binlogs() -> str:
    return f"{len(historic_binlogs())} files"


def main() -> int:
    """Prepare all at once; returns the process's exit status."""
    tasks: dict[str, Callable[[], str]] = {flavor: partial(_version, flavor) for flavor in FLAVORS}
    tasks["historic binlogs"] = _count_historic_binlogs
    tasks["object store"] = lambda: str(object_store_program().name)
    with ThreadPoolExecutor(len(tasks)) as pool:
        return 0 if all(list(pool.map(_prepare, tasks, tasks.values()))) else 1


if __name__ == "__main__":
    sys.exit(main())
