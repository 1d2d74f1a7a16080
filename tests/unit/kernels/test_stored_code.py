"""Compiled code on disk: what is loaded, and what is compiled anew."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import pytest
from numba import types
from numba.core import event

from engine.kernels import cache, stored_code
from engine.kernels.baseline import baseline
from engine.kernels.cache import kernel_folder
from engine.kernels.stored_code import StoredCode, keep_compiled
from tests import PROJECT

SIGNATURE = (types.int64,)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which the code of this module's functions is stored, which is empty."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    kernel_folder.cache_clear()
    yield kernel_folder(__name__)
    kernel_folder.cache_clear()


def twice(number: int) -> int:
    return number * 2


def times(factor: int) -> Callable[[int], int]:
    def multiplied(number: int) -> int:
        return number * factor

    return multiplied


def dispatcher(function: Callable[[int], int]) -> Any:
    """As a new process has it."""
    made = numba.njit(nogil=True)(function)
    keep_compiled(made)
    return made


@contextmanager
def compilations(expected: int) -> Iterator[None]:
    """Expect this number of compilations in the block."""
    with event.install_recorder("numba:compile") as recorder:
        yield
    assert sum(one.is_start for _, one in recorder.buffer) == expected


def test_what_was_compiled_is_loaded(folder: Path) -> None:
    with compilations(1):
        assert dispatcher(twice)(21) == 42
    (file,) = folder.iterdir()
    assert file.name.startswith("twice-") and file.suffix == ".code"
    with compilations(0):
        assert dispatcher(twice)(21) == 42


@pytest.mark.parametrize("damage", [b"", b"\0" * 5000, b"short"], ids=["empty", "zeros", "short"])
def test_a_damaged_file_is_compiled_again(folder: Path, damage: bytes) -> None:
    dispatcher(twice)(21)
    (file,) = folder.iterdir()
    file.write_bytes(damage)
    with compilations(1):
        assert dispatcher(twice)(21) == 42
    with compilations(0):
        assert dispatcher(twice)(21) == 42


ANOTHER_USER = 65534


def give_away(path: Path) -> None:
    os.chown(path, ANOTHER_USER, ANOTHER_USER)


def open_to_group(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o020)


def open_to_all(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o002)


@pytest.mark.parametrize("expose", [give_away, open_to_group, open_to_all])
@pytest.mark.parametrize("level", [0, 1, 2, 3], ids=["file", "module", "kernels", "cache"])
def test_code_that_others_can_have_written_is_not_run(
    folder: Path, expose: Callable[[Path], None], level: int
) -> None:
    if expose is give_away and os.geteuid():
        pytest.skip("only root can give a file to another user")
    dispatcher(twice)(21)
    (file,) = folder.iterdir()
    expose((file, *file.parents)[level])
    with compilations(1):
        assert dispatcher(twice)(21) == 42


def test_a_link_in_place_of_code_is_not_followed(folder: Path) -> None:
    dispatcher(twice)(21)
    (file,) = folder.iterdir()
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")
    with compilations(1):
        assert dispatcher(twice)(21) == 42


def test_folders_that_a_umask_leaves_open_to_the_group_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "another"))
    kernel_folder.cache_clear()
    (tmp_path / "another" / "binlog-engine" / "kernels").mkdir(parents=True)
    for name in ("binlog-engine", "binlog-engine/kernels"):
        (tmp_path / "another" / name).chmod(0o775)
    before = os.umask(0o002)
    try:
        dispatcher(twice)(21)
    finally:
        os.umask(before)
    with compilations(0):
        assert dispatcher(twice)(21) == 42


def test_functions_of_one_name_have_files_of_their_own(folder: Path) -> None:
    with compilations(2):
        assert dispatcher(times(3))(5) == 15
        assert dispatcher(times(4))(5) == 20
    with compilations(0):
        assert dispatcher(times(3))(5) == 15
        assert dispatcher(times(4))(5) == 20


def test_each_signature_has_a_file(folder: Path) -> None:
    made = dispatcher(twice)
    assert made(2) == 4 and made(1.5) == 3.0
    assert len(list(folder.iterdir())) == 2


CALLER = """
import numba
from tests.unit.kernels.test_stored_code import compilations, dispatcher, twice
loaded = dispatcher(twice)
def calling(number):
    return loaded(number) + 1
with compilations(1):
    print(dispatcher(calling)(21))
"""


def test_what_was_loaded_is_linked_into_what_is_compiled(folder: Path) -> None:
    """In another process, where no code of the function is but what was stored."""
    dispatcher(twice)(21)
    ended = subprocess.run([sys.executable, "-c", CALLER], cwd=PROJECT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == "43"


class _ForBaseline:
    """A compiled function as a machine that compiles for the baseline has it."""

    def __init__(self, result: Any) -> None:
        self._result = result
        triple, *_ = result.codegen.magic_tuple()
        least = baseline()
        assert least is not None
        self.codegen = SimpleNamespace(magic_tuple=lambda: (triple, least.name, least.flags))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)


@pytest.fixture
def shipped(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installation, with code of `twice` for the baseline; the user's cache is empty."""
    compiled = numba.njit(SIGNATURE)(twice).overloads[SIGNATURE]
    StoredCode(twice).save_overload(SIGNATURE, _ForBaseline(compiled))
    place = tmp_path / "installed"
    folder.parent.rename(place)
    for module in (cache, stored_code):
        monkeypatch.setattr(module, "SHIPPED", place)
    return place


def test_code_of_the_installation_is_loaded(shipped: Path, folder: Path) -> None:
    with compilations(0):
        assert dispatcher(twice)(21) == 42
    assert not folder.exists()


def test_what_the_installation_lacks_is_compiled(shipped: Path) -> None:
    with compilations(1):
        assert dispatcher(twice)(1.5) == 3.0


def test_code_for_the_baseline_is_not_taken_as_code_for_this_processor(shipped: Path, folder: Path) -> None:
    """A file counts only where it is expected, since its name contains the processor."""
    shipped.rename(folder.parent)
    with compilations(1):
        assert dispatcher(twice)(21) == 42


WITHOUT_FEATURES = """
import llvmlite.binding
present = llvmlite.binding.get_host_cpu_features()
# Only after numba has made its own use of them.
import numba; numba.njit("int64(int64)")(lambda number: number)
llvmlite.binding.get_host_cpu_features = lambda: {}
from pathlib import Path
from engine.kernels import cache, stored_code
cache.SHIPPED = stored_code.SHIPPED = Path(SHIPPED)
from tests.unit.kernels.test_stored_code import compilations, dispatcher, twice
with compilations(1):
    print(dispatcher(twice)(21))
"""


def test_a_processor_without_the_baselines_features_compiles(shipped: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", f"SHIPPED = {str(shipped)!r}\n{WITHOUT_FEATURES}"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "own")},
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == "42"
