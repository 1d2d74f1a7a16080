"""Large record batches go past the page cache where that can be; files are the same wherever it cannot."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pytest

from engine.decode.arrow.arena import Arena
from engine.decode.arrow.record_message import MessageTemplate, write_batch
from engine.output.commit import SchemaVersion
from engine.output.direct_io import DIRECT_BYTES, DIRECT_PAGE
from engine.output.files import OutputError
from engine.pipeline.message import Frame
from engine.sink import growing_file
from engine.sink.direct_writer import DirectWriter
from engine.sink.ipc_file import Template
from engine.sink.table_file import Extent, TableFile

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])
ROOM = 16 << 20


def batch_of(rows: int) -> pa.RecordBatch:
    columns = {"number": range(rows), "text": [f"{number:0100}" for number in range(rows)]}
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMA)


BATCHES = [batch_of(rows) for rows in (3, 30_000, 20_000, 5, 40_000)]


def messages_in(memory: np.ndarray) -> list[memoryview]:
    """As a decoder leaves them in a slot, one after the other."""
    arena, template = Arena(memory), MessageTemplate(SCHEMA)
    return [write_batch(arena, template, batch)[0].content.data for batch in BATCHES]


def aligned(offset: int = 0) -> np.ndarray:
    return np.frombuffer(mmap.mmap(-1, ROOM), np.uint8)[offset:]


def written_file(folder: Path, messages: list[memoryview]) -> Path:
    version = SchemaVersion("shop", "orders", 1, SCHEMA.serialize().to_pybytes())
    file = TableFile(folder, "orders/1.arrow", version, Template(SCHEMA.serialize().to_pybytes()))
    for number, message in enumerate(messages):
        file.write([message], Extent(1, BATCHES[number].num_rows, number, number, 0, 0))
        file.keep()
    file.close()
    assert file.data_file().bytes == (folder / "orders/1.arrow").stat().st_size
    # Taking it would cost too much where bodies are large.
    assert file.data_file().checksum is None
    return folder / "orders/1.arrow"


def check(path: Path) -> None:
    content = path.read_bytes()
    assert pa.ipc.open_file(pa.py_buffer(content)).read_all().to_batches() == BATCHES
    # The file format is the stream's with something around it.
    assert list(pa.ipc.open_stream(pa.py_buffer(content[8:]))) == BATCHES


def writes_past_the_cache(folder: Path) -> bool:
    """Whether the file system can do so at all, tried without the engine."""
    try:
        descriptor = os.open(folder / "probe", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    except OSError:
        return False
    try:
        return os.pwrite(descriptor, mmap.mmap(-1, DIRECT_PAGE), 0) == DIRECT_PAGE
    except OSError:
        return False
    finally:
        os.close(descriptor)


class Spy(DirectWriter):
    """How much was written past the page cache."""

    total = 0

    def write(self, content: Frame, offset: int) -> int:
        done = super().write(content, offset)
        Spy.total += done
        return done


@pytest.fixture(autouse=True)
def spied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_file, "DirectWriter", Spy)
    Spy.total = 0


def test_large_bodies_are_whole_pages_on_pages(tmp_path: Path) -> None:
    messages = messages_in(aligned())
    check(written_file(tmp_path, messages))
    bodies = [len(message) - 8 - int.from_bytes(message[4:8], "little") for message in messages]
    large = [body for body in bodies if body >= DIRECT_BYTES]
    assert len(large) == 3
    assert all(body % DIRECT_PAGE == 0 for body in large)
    assert Spy.total == (sum(large) if writes_past_the_cache(tmp_path) else 0)


def test_memory_off_a_page_is_written_as_usual(tmp_path: Path) -> None:
    check(
        written_file(
            tmp_path, [memoryview(bytes(8) + bytes(message))[8:] for message in messages_in(aligned(8))]
        )
    )


@pytest.mark.parametrize("refused", ["open", "pwrite"])
def test_a_file_system_that_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str) -> None:
    original = getattr(os, refused)

    def refuse(*arguments: Any, **options: Any) -> Any:
        if refused == "pwrite" or (len(arguments) > 1 and arguments[1] & os.O_DIRECT):
            raise OSError(errno.EINVAL, "Invalid argument")
        return original(*arguments, **options)

    monkeypatch.setattr(os, refused, refuse)
    check(written_file(tmp_path, messages_in(aligned())))
    assert Spy.total == 0


@pytest.mark.parametrize("pages", [1, 100])
def test_a_write_that_stops_halfway_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    pwrite = os.pwrite
    most = pages * DIRECT_PAGE
    monkeypatch.setattr(os, "pwrite", lambda file, content, at: pwrite(file, content[:most], at))
    check(written_file(tmp_path, messages_in(aligned())))


def test_a_full_disk_does_not_change_the_way_of_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    messages = messages_in(aligned())
    monkeypatch.setattr(os, "pwrite", fail)
    with pytest.raises(OutputError, match="No space left on device"):
        written_file(tmp_path, messages)


def test_what_is_cut_off_or_moved_leaves_a_whole_file(tmp_path: Path) -> None:
    """The rows of a transaction that is still open when a commit is due go into a file of the next one."""
    messages = messages_in(aligned())
    version = SchemaVersion("shop", "orders", 1, SCHEMA.serialize().to_pybytes())
    first = TableFile(tmp_path, "orders/1.arrow", version, Template(SCHEMA.serialize().to_pybytes()))
    extents = [Extent(1, batch.num_rows, number, number, 0, 0) for number, batch in enumerate(BATCHES)]
    for message, extent in zip(messages[:2], extents[:2], strict=True):
        first.write([message], extent)
    first.keep()
    for message, extent in zip(messages[2:], extents[2:], strict=True):
        first.write([message], extent)
    later = TableFile(tmp_path, "orders/2.arrow", version, Template(SCHEMA.serialize().to_pybytes()))
    later.write(*first.take_open())
    later.keep()
    later.close()
    assert first.drop_open()
    for name, expected in (("1", BATCHES[:2]), ("2", BATCHES[2:])):
        read = pa.ipc.open_file(pa.py_buffer((tmp_path / f"orders/{name}.arrow").read_bytes()))
        assert read.read_all().to_batches() == expected
