"""The second try of `make test`: the last lines name what passes only then; what fails again fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import PROJECT

SOUND = "def test_sound(): pass\n"
FLAKY = """
from pathlib import Path
def test_flaky():
    tried = Path("tried")
    before = tried.exists()
    tried.touch()
    assert before
"""
BROKEN = "def test_broken(): assert False\n"
SKIPS = FLAKY.replace("assert before", "import pytest; pytest.skip('no server') if before else pytest.fail()")
NO_TEARDOWN = """
import pytest
@pytest.fixture
def fixture():
    yield
    assert False
def test_teardown(fixture): pass
"""
NAMED = "only in the second try: "


@pytest.fixture(params=[(), ("--numprocesses", "2")], ids=["alone", "side by side"])
def options(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param


def twice(folder: Path, tests: str, *options: str) -> tuple[int, list[str]]:
    """Status and lines of a run of these tests."""
    (folder / "test_these.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -q\n")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run(
        [PROJECT / "tests/setup/twice.sh", *options, "--", "test_these.py"],
        env=inherited | {"PYTHON": sys.executable, "PYTHONPATH": str(PROJECT)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ended.returncode, ended.stdout.splitlines()


def test_all_pass_at_once(tmp_path: Path) -> None:
    status, lines = twice(tmp_path, SOUND)
    assert status == 0
    assert lines[-1].startswith("1 passed")


def test_what_passes_only_then_is_named_after_the_closing_line(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    status, lines = twice(tmp_path, SOUND + FLAKY, *options)
    assert status == 0
    assert lines[-2].startswith("1 passed")
    assert lines[-1] == f"passed {NAMED}test_these.py::test_flaky"
    assert any(line.startswith("1 failed, 1 passed") for line in lines)


def test_what_fails_again_fails(tmp_path: Path) -> None:
    status, lines = twice(tmp_path, SOUND + FLAKY + BROKEN + NO_TEARDOWN)
    assert status == 1
    assert lines[-2].startswith("1 failed, 2 passed") and "1 error" in lines[-2]
    assert lines[-1] == f"passed {NAMED}test_these.py::test_flaky"


def test_what_is_skipped_only_then_is_named(tmp_path: Path) -> None:
    status, lines = twice(tmp_path, SKIPS)
    assert (status, lines[-1]) == (0, f"skipped {NAMED}test_these.py::test_flaky")


def test_tests_that_cannot_be_collected_get_no_second_try(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Side by side no test runs where not all processes collect the same."""
    status, lines = twice(tmp_path, SOUND + FLAKY.replace("def test_flaky():", "if True:"), *options)
    assert status == 2
    assert not any(NAMED in line for line in lines)


def test_an_interrupted_run_gets_no_second_try(tmp_path: Path) -> None:
    status, lines = twice(tmp_path, BROKEN + "def test_stop(): raise KeyboardInterrupt\n")
    assert status == 2
    assert any("KeyboardInterrupt" in line for line in lines)
    assert not any(NAMED in line for line in lines)


def test_without_a_list_of_what_failed_not_everything_runs_again(tmp_path: Path) -> None:
    status, lines = twice(tmp_path, SOUND + BROKEN, "-p", "no:cacheprovider")
    assert status == 5
    assert not any(NAMED in line for line in lines)
