"""The first pass over an archive: what each file's rows need, and the schemas of all rows.

What a file's rows need depends on the statements in the files before it. But most files change no definition:
several are scanned at the same time, all from the definitions before the first of them, and a file that
changes them has the scans after it made again. So the result is that of scans one after the other.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from types import TracebackType
from typing import Self

import pyarrow as pa

from engine.archive.files import ArchiveFile, is_local
from engine.archive.reading import FilePart, Reading, TableKey, packed_model
from engine.archive.rolled_back import RolledBack
from engine.archive.scan import FileScan, scan_file
from engine.dataclass import dataclass
from engine.schema.model import SchemaModel

MOST_SIDE_BY_SIDE = 8
"""The most files that are scanned at the same time, each with some megabytes of memory, by threads.

Decompression, kernels and file systems release Python's lock, and take nearly all of the time.
"""


@dataclass(frozen=True, slots=True)
class Survey:
    """What the first pass has found."""

    parts: tuple[FilePart, ...]
    """One per file, or several for a large one, in order."""
    schemas: dict[TableKey, tuple[pa.Schema, ...]]
    """Of each wanted table with rows the schemas of its rows, in the order in which they appear."""


def survey(
    files: Sequence[ArchiveFile], model: SchemaModel, reading: Reading, part_bytes: int | None = None
) -> Survey:
    """Read the files; `model` has the definitions at the start of the first one.

    A file that is not compressed is divided into parts of at least `part_bytes`, if that makes more than one;
    None divides no file. Raises `EngineError` for what cannot be read, with the place of damage.
    """
    found: dict[TableKey, dict[bytes, pa.Schema]] = {}
    parts: list[FilePart] = []
    rolled_back = RolledBack()
    with _Scans(files, model, reading, part_bytes) as scans:
        for _ in files:
            scan = scans.take(model, tuple(found))
            parts += scan.parts
            rolled_back.follow(scan.parts[0].file.name, scan.xa_steps)
            for decoder in scan.tables:
                of_table = found.setdefault((decoder.database, decoder.table), {})
                of_table.setdefault(decoder.schema_bytes, decoder.schema)
            model = scan.model
    parts = [replace(part, rolled_back=rolled_back.spans(part.file.name)) for part in parts]
    return Survey(tuple(parts), {table: tuple(schemas.values()) for table, schemas in found.items()})


def side_by_side(file: ArchiveFile) -> int:
    """How many files such as this one are scanned at the same time.

    One per core, since more push each other's bytes out of the caches: of xz, eight on one core take a sixth
    longer than one after the other. But files on other machines are also waited for.
    """
    return min(os.cpu_count() or 1, MOST_SIDE_BY_SIDE) if is_local(file) else MOST_SIDE_BY_SIDE


class _Scans:
    """The scans of the files in order, some of them made ahead.

    How many doubles with each file, and is one again after a file that changes definitions: an archive with
    such statements in every file is read once, not eight times.
    """

    def __init__(
        self, files: Sequence[ArchiveFile], model: SchemaModel, reading: Reading, part_bytes: int | None
    ) -> None:
        following = [*(file.name for file in files[1:]), None]
        self._files = list(zip(files, following, strict=True))
        self._reading = reading
        self._part_bytes = part_bytes
        self._side_by_side = side_by_side(files[0])
        self._pool = ThreadPoolExecutor(self._side_by_side, "scan")
        self._taken = 0
        self._ahead: deque[Future[FileScan]] = deque()
        self._most = 1
        self._begin_from(model, ())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._pool.shutdown()

    def take(self, model: SchemaModel, tables_with_rows: tuple[TableKey, ...]) -> FileScan:
        """The scan of the next file; `model` and `tables_with_rows` are as they are before it.

        Raises as `scan_file` does.
        """
        if not model.has_definitions_of(self._model):
            self._stop()
            self._begin_from(model, tables_with_rows)
        scan = self._first()
        if scan.is_counted and self._tables_with_rows != tables_with_rows:
            self._stop()
            self._begin_from(model, tables_with_rows)
            scan = self._first()
        self._ahead.popleft()
        self._taken += 1
        self._most = min(2 * self._most, self._side_by_side)
        if scan.is_counted:
            return scan
        (part,) = scan.parts
        return replace(scan, parts=(replace(part, tables_with_rows=tables_with_rows),))

    def _begin_from(self, model: SchemaModel, tables_with_rows: tuple[TableKey, ...]) -> None:
        """The next scans begin with these."""
        self._model = model
        self._packed_model = packed_model(model)
        self._tables_with_rows = tables_with_rows
        self._most = 1
        self._is_stopped = Event()

    def _first(self) -> FileScan:
        begun = self._taken + len(self._ahead)
        for file, following in self._files[begun : self._taken + self._most]:
            whole = FilePart(file, self._packed_model, self._tables_with_rows, following)
            given = (whole, self._reading, self._part_bytes, self._is_stopped.is_set)
            self._ahead.append(self._pool.submit(scan_file, *given))
        return self._ahead[0].result()

    def _stop(self) -> None:
        """Make no more use of what was begun."""
        self._is_stopped.set()
        for scan in self._ahead:
            scan.cancel()
        self._ahead.clear()
