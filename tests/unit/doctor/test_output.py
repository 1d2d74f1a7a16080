"""What the doctor finds of folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.doctor.finding import Finding
from engine.doctor.output import check_output, file_system


def findings(out: Path) -> dict[str, Finding]:
    return {finding.what: finding for finding in check_output(out)}


def test_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    found = findings(tmp_path / "a" / "b")
    assert found["output folder"].actual.endswith("b, new")
    assert found["permission in the output folder"].actual == f"{tmp_path} is writable"
    assert not list(tmp_path.iterdir())


def test_something_else_is_there(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    (finding,) = check_output(tmp_path)
    assert finding.level == "required"
    assert "contains something other" in finding.why


def test_no_file_can_be_created() -> None:
    assert findings(Path("/proc/nothing"))["permission in the output folder"].level == "required"


def test_memory_is_not_a_disk() -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir():
        pytest.skip("this machine has no /dev/shm")
    assert file_system(memory) == "tmpfs"
    finding = findings(memory / "binlog-engine-output-that-is-not-there")["file system of the output"]
    assert (finding.actual, finding.level) == ("tmpfs", "advice")
