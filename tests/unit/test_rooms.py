"""Which packages are installed, and what tests may import; import-linter checks the engine's layers."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

from tests import PROJECT


def imports_of(file: Path) -> set[str]:
    """Modules, and names in modules, that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {f"{alias.name}." for alias in node.names}
    return found


def test_no_module_imports_from_a_test_module() -> None:
    files = sorted((PROJECT / "tests").rglob("*.py"))
    assert len(files) > 150
    offending = {
        str(file): name
        for file in files
        for name in imports_of(file)
        if name.startswith("tests.") and any(part.startswith("test_") for part in name.split(".")[:-1])
    }
    assert not offending


MADE_BY_THE_BUILD = "compiled/*/*.code"
"""Data that only a wheel has."""


def test_every_package_of_the_engine_is_installed() -> None:
    """With its data: an editable installation works without them, a built one does not."""
    setuptools = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {
        ".".join(path.parent.relative_to(PROJECT).parts) for path in (PROJECT / "engine").rglob("__init__.py")
    }
    places = setuptools["package-dir"]
    declared = {places.get(name, name).replace("/", ".") for name in setuptools["packages"]}
    assert declared == found
    for package, patterns in setuptools["package-data"].items():
        for pattern in patterns:
            if pattern != MADE_BY_THE_BUILD:
                assert list((PROJECT / package.replace(".", "/")).glob(pattern)), (package, pattern)
