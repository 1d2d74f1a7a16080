"""A server whose redo log is held back when told so, as on a slow disk: what it writes is not on disk yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.preload import compiled


class HeldRedoLog:
    """Of the server that is started with `environment`; `folder` is a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._sign = folder / "held"

    @property
    def environment(self) -> Mapping[str, str]:
        """What the server has to be started with."""
        library = compiled(Path(__file__).with_name("held_redo_log.c"))
        return {"LD_PRELOAD": str(library), "HELD_REDO_LOG": str(self._sign)}

    @contextmanager
    def held(self) -> Iterator[None]:
        """Meanwhile nothing that the server writes into its redo log comes to the disk."""
        self._sign.touch()
        try:
            yield
        finally:
            self._sign.unlink()
