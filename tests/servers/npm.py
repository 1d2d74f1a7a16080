"""An npm package unpacked into a folder, fetched by the npm client as the machine has it configured."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from . import tools


def fetch(package: str, into: Path) -> None:
    """Unpack the newest version of `package` into `into`.

    Raises UnavailableError when there is no npm client to be had, or it cannot fetch the package.
    """
    with tempfile.TemporaryDirectory(dir=into, prefix=".npm-") as folder:
        workspace = Path(folder)
        printed = tools.run([*tools.npm(workspace), "pack", "--json", package], workspace)
        (packed,) = json.loads(printed)
        tools.run(["tar", "--extract", "--file", packed["filename"]], workspace)
        for entry in (workspace / "package").iterdir():
            entry.rename(into / entry.name)
