"""The cache of compiled kernels: old code is never used for new sources."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import engine
from engine.kernels.cache import source_digest

PACKAGE = Path(engine.__file__).parent
ROOT = PACKAGE.parent
DECORATORS = {"kernel", "njit", "jit", "intrinsic"}


def has_kernels(path: Path) -> bool:
    source = path.read_text()
    # Every test run comes here, and parsing all modules takes seconds.
    if not any(f"@{name}" in source or f".{name}" in source for name in DECORATORS):
        return False
    decorators = (
        part
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        for part in ast.walk(decorator)
    )
    return any(getattr(part, "id", getattr(part, "attr", None)) in DECORATORS for part in decorators)


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in PACKAGE.rglob("*.py")}
WITH_KERNELS = sorted(name for name, path in MODULES.items() if has_kernels(path))


def imports_of(module: str) -> set[str]:
    """The engine's modules that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & MODULES.keys()


def closure(module: str) -> set[str]:
    found, waiting = {module}, [module]
    while waiting:
        new = imports_of(waiting.pop()) - found
        found |= new
        waiting += new
    return found


def python(root: Path, code: str, **environment: str) -> str:
    """What `code` prints in a process that uses the package below `root`."""
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=inherited | environment, cwd=root, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


DIGESTS = f"""
from engine.kernels.cache import source_digest
for module in {WITH_KERNELS}:
    print(module, source_digest(module))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with a copy of the package."""
    shutil.copytree(PACKAGE, tmp_path / "root" / "engine", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "root"


@pytest.mark.parametrize(
    "changed",
    [
        "kernels.kernel",
        "kernels.bounds",
        "pipeline.messages",
        "output.change_schema",
        "binlog.statements",
        "binlog.field_types",
    ],
)
def test_a_change_means_new_kernels_for_all_modules_that_it_is_part_of(copy: Path, changed: str) -> None:
    before = dict(line.split() for line in python(copy, DIGESTS).splitlines())
    assert before == {module: source_digest(module) for module in WITH_KERNELS}
    with (copy / "engine" / f"{changed.replace('.', '/')}.py").open("a") as file:
        file.write("# changed\n")
    after = dict(line.split() for line in python(copy, DIGESTS).splitlines())
    renewed = {module for module in WITH_KERNELS if before[module] != after[module]}
    assert renewed == {module for module in WITH_KERNELS if f"engine.{changed}" in closure(module)}


def test_every_kernel_is_stored_under_its_module() -> None:
    """Only two decorators keep compiled code, and none of it is in numba's own cache."""
    assert not [name for name, path in MODULES.items() if "cache=True" in path.read_text()]
    keeping = sorted(name for name, path in MODULES.items() if "    keep_compiled(" in path.read_text())
    assert keeping == ["engine.kernels.kernel", "engine.kernels.typed"]
    assert len(WITH_KERNELS) > 15


FOLDER = "from engine.kernels.cache import kernel_folder; print(kernel_folder('engine.decode.rows.walk'))"


def test_the_folder_is_the_users_alone(tmp_path: Path) -> None:
    folder = Path(python(ROOT, FOLDER, XDG_CACHE_HOME=str(tmp_path)))
    assert folder.parent == tmp_path / "binlog-engine" / "kernels"
    assert folder.is_dir() and folder.stat().st_mode & 0o77 == 0


def test_folders_that_nothing_has_used_for_long_go(tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path)}
    folder = Path(python(ROOT, FOLDER, **cache))
    old, recent = (
        folder.with_name("engine.decode.rows.walk-old"),
        folder.with_name("engine.decode.rows.walk-recent"),
    )
    old.mkdir()
    recent.mkdir()
    os.utime(old, (0, 0))
    folder.rmdir()
    assert Path(python(ROOT, FOLDER, **cache)) == folder
    assert not old.exists() and recent.exists()


def test_kernels_with_checks_are_kept_apart(tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path), "BINLOG_ENGINE_CHECK_BOUNDS": "1"}
    apart = Path(python(ROOT, FOLDER, **cache))
    assert apart.parent == tmp_path / "binlog-engine" / "checked-kernels"
    assert python(ROOT, FOLDERS, **cache) == str([str(apart)])


FOLDERS = """
from engine.kernels.cache import stored_folders
print([str(folder) for folder in stored_folders("engine.decode.rows.walk")])
"""


def test_a_folder_of_the_users_choice(tmp_path: Path) -> None:
    folder = Path(python(ROOT, FOLDER, NUMBA_CACHE_DIR=str(tmp_path), XDG_CACHE_HOME="/dev/null"))
    assert folder.parent == tmp_path / "binlog-engine" / "kernels"


def test_kernels_of_this_machine_come_before_those_of_the_installation(tmp_path: Path) -> None:
    own = Path(python(ROOT, FOLDER, XDG_CACHE_HOME=str(tmp_path)))
    shipped = PACKAGE / "kernels" / "compiled" / own.name
    assert python(ROOT, FOLDERS, XDG_CACHE_HOME=str(tmp_path)) == str([str(own), str(shipped)])


def test_without_a_cache_folder() -> None:
    """A kernel is compiled for this process alone."""
    code = (
        "import numpy as np; from engine.kernels.kernel import read_u16; print(read_u16(np.ones(2, 'u1'), 0))"
    )
    assert python(ROOT, code, XDG_CACHE_HOME="/dev/null", NUMBA_CACHE_DIR="") == "257"
