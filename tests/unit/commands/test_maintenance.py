"""What `run` does about old data, by a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from queue import Queue

import pyarrow as pa
import pytest

from engine.commands import maintenance
from engine.commands.maintenance import Maintenance
from engine.config.setting_groups import MaintenanceSettings
from engine.errors import EngineError
from engine.output.commit_log import CommitLog
from engine.output.consumers import note_progress
from engine.output.data_file_names import is_compacted
from engine.output.log_files import COMMITS_PER_SEGMENT
from engine.output.reader import Changes
from tests.support.output import Output, insert


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two segments, of which the first one can be removed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: None)
        output = Output(tmp_path_factory.mktemp("maintenance") / "changes")
        output.table("shop.orders", pa.schema([("id", pa.int32())]))
        for number in range(2 * COMMITS_PER_SEGMENT):
            output.commit({"shop.orders": [insert(id=number)]} if number % 500 < 3 else {})
        output.log.consolidate()
    return output.path


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "CHECK_SECONDS", 0.02)


def no_warning(text: str) -> None:
    raise AssertionError(text)


def wait_for(out: Path, reached: Callable[[CommitLog], bool]) -> None:
    while not reached(CommitLog(out)):
        time.sleep(0.05)


@pytest.mark.usefixtures("often")
def test_old_data_is_compacted_and_removed(out: Path) -> None:
    rows = Changes(out).read("shop", "orders")
    with Maintenance(out, MaintenanceSettings(), no_warning):
        wait_for(out, lambda log: is_compacted(log.read(0).files[0].path))
    assert Changes(out).read("shop", "orders") == rows
    note_progress(out, "nightly", COMMITS_PER_SEGMENT - 1)
    with Maintenance(out, MaintenanceSettings(compact="off", retain="1d"), no_warning):
        wait_for(out, lambda log: log.oldest_version() == COMMITS_PER_SEGMENT)
    assert Changes(out).read("shop", "orders") == rows.slice(6)


@pytest.mark.usefixtures("often")
def test_an_error_is_a_warning(out: Path) -> None:
    warnings: Queue[str] = Queue()
    journal = out / "_compaction" / f"{5000:020d}-{5999:020d}.json"
    journal.write_text("{")
    os.utime(journal, (0, 0))
    with Maintenance(out, MaintenanceSettings(), warnings.put):
        warning = warnings.get(timeout=60)
    assert warning.startswith(f"old data is not taken care of at present: {journal} is damaged")
    journal.unlink()


def test_the_supervisor_asks_without_arrow() -> None:
    code = "import sys, engine.output.compaction_progress; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_nothing_is_started_for_nothing(out: Path) -> None:
    with pytest.raises(EngineError, match="neither an age nor a size"):
        Maintenance(out, MaintenanceSettings(retain="for ever"), no_warning)
    with Maintenance(out, MaintenanceSettings(compact="off"), no_warning) as idle:
        assert not idle.is_active
