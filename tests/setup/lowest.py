"""Prints the lowest versions that pyproject.toml allows, as constraints for pip: `make test-lowest`."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
EXTRAS = ("spark", "dev")
_LOWEST = re.compile(r"(?P<name>[A-Za-z0-9-]+)>=(?P<version>[0-9.]+)")


def lowest(requirement: str) -> str:
    """`name>=version` and what else the requirement says, as `name==version`."""
    found = _LOWEST.match(requirement)
    if found is None:
        raise SystemExit(f"{requirement!r} in pyproject.toml has no lowest version: write name>=version")
    return f"{found['name']}=={found['version']}"


def main() -> None:
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    optional = project["optional-dependencies"]
    wanted = chain(project["dependencies"], *(optional[extra] for extra in EXTRAS))
    print(*sorted({lowest(requirement) for requirement in wanted}), sep="\n")


if __name__ == "__main__":
    main()
