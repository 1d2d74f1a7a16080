"""Binlog files into a folder that has some already: later files continue it."""

from __future__ import annotations

from pathlib import Path

from engine.binlog.event_types import ROTATE_EVENT
from engine.binlog.files import read_events
from engine.binlog.samples import sample_binlogs
from engine.output.reader import Changes
from tests.support.committed import assert_sound
from tests.support.engine_run import Ended, run_command


def test_later_files_go_on_and_earlier_ones_are_refused(tmp_path: Path) -> None:
    """By number and not as text, since numbers become longer."""
    one, other = sample_binlogs()
    out = tmp_path / "out"

    def decode(sample: Path, number: str) -> Ended:
        path = tmp_path / f"binlog.{number}"
        *_, (end, rotation) = read_events(sample)
        assert rotation[4] == ROTATE_EVENT
        # What it names as the next one has another name here.
        path.write_bytes(sample.read_bytes()[:end])
        return run_command("decode", str(path), "--out", str(out), "--workers=1")

    assert decode(other, "999999").status == 0
    earlier = decode(one, "999998")
    assert earlier.status == 1
    assert "the output folder continues at binlog.999999 position" in earlier.sentence
    last = Changes(out).log.latest()
    assert decode(one, "1000000").status == 0
    later = Changes(out).log.latest()
    assert last is not None and later is not None
    assert later.last_seq > last.last_seq
    assert_sound(out)


def test_the_file_to_go_on_in_is_not_chosen_among_several_of_its_name(tmp_path: Path) -> None:
    """As after RESET MASTER: the rows of the later one would be in the output twice."""
    out = tmp_path / "out"
    files: list[str] = []
    for folder, sample in zip(("later", "earlier"), sample_binlogs(), strict=True):
        *_, (end, _) = read_events(sample)
        path = tmp_path / folder / "binlog.000001"
        path.parent.mkdir()
        path.write_bytes(sample.read_bytes()[:end])
        files.insert(0, str(path))
    words = ("--out", str(out), "--workers=1")
    assert run_command("decode", *files, *words).status == 0
    last = Changes(out).log.latest()
    assert last is not None
    again = run_command("decode", *files, *words)
    assert again.status == 1 and "several of the files have that name" in again.sentence
    assert run_command("decode", files[1], *words).status == 0
    assert Changes(out).log.latest() == last
