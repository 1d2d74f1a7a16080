"""What the tests may import of each other; the engine's own layers are import-linter's (pyproject.toml)."""

from __future__ import annotations

import ast
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


def test_no_module_imports_from_a_test_module():
    files = sorted((PROJECT / "tests").rglob("*.py"))
    assert len(files) > 150
    offending = {
        str(file): name
        for file in files
        for name in imports_of(file)
        if name.startswith("tests.") and any(part.startswith("test_") for part in name.split(".")[:-1])
    }
    assert not offending
