"""An npm package unpacked into a folder, fetched by the npm client as the machine has it configured.

Debian's npm, unpacked beside the servers, stands in on a machine that has none: that needs neither root nor a
registry's name here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .cache import UnavailableError, cached
from .debian import unpack
from .loader import loader_command

ATTEMPTS = 3


def fetch(package: str, into: Path) -> None:
    """Unpack the newest version of `package` (its `package` folder's contents) into `into`.

    Raises UnavailableError when the registry cannot be reached or has no such package.
    """
    command, environment = _npm()
    with tempfile.TemporaryDirectory(dir=into, prefix=".npm-") as workspace:
        archive = _pack([*command, "pack", "--json", package], environment, Path(workspace))
        with tarfile.open(archive) as content:
            content.extractall(workspace, filter="data")
        for entry in (Path(workspace) / "package").iterdir():
            entry.rename(into / entry.name)


def _pack(command: Sequence[str], environment: Mapping[str, str], workspace: Path) -> Path:
    for attempt in range(1, ATTEMPTS + 1):
        done = subprocess.run(
            command,
            cwd=workspace,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode == 0:
            (packed,) = json.loads(done.stdout)
            return workspace / str(packed["filename"])
        if attempt < ATTEMPTS:
            time.sleep(attempt)
    raise UnavailableError(f"{' '.join(command[-3:])} failed: {done.stderr.strip()[-500:]}")


def _npm() -> tuple[list[str], dict[str, str]]:
    """The npm client: argv prefix and environment."""
    installed = shutil.which("npm")
    if installed:
        return [installed], {}
    root = cached("npm", lambda folder: unpack("bookworm", ["npm"], folder))
    modules = [root / "usr/share/nodejs", root / "usr/lib/nodejs", *root.glob("usr/lib/*/nodejs")]
    return (
        [
            *loader_command(root),
            str(root / "usr/bin/node"),
            str(root / "usr/share/nodejs/npm/bin/npm-cli.js"),
        ],
        {"NODE_PATH": ":".join(map(str, modules))},
    )
