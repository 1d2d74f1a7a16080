"""Puts what N decoders deliver back into the order in which the network process numbered it.

Nothing is dropped and nothing waits longer than it must. The network process has only a window of
batches under way, so what is held here is bounded by that window.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from engine.errors import EngineError

Item = TypeVar("Item")


class Reorder(Generic[Item]):
    """Items by sequence number, given out as 0, 1, 2… without gaps."""

    def __init__(self) -> None:
        self._next = 0
        self._waiting: dict[int, Item] = {}

    def __len__(self) -> int:
        """How many items wait for one before them."""
        return len(self._waiting)

    def push(self, sequence: int, item: Item) -> Iterator[Item]:
        """Take one item, and give all that are in order now.

        Raises `EngineError` for a number that came before, which would be a defect of the engine.
        """
        if sequence < self._next or sequence in self._waiting:
            raise EngineError(f"batch {sequence} reached the sink twice: this is a bug, please report it")
        self._waiting[sequence] = item
        return self._in_order()

    def _in_order(self) -> Iterator[Item]:
        while self._next in self._waiting:
            item = self._waiting.pop(self._next)
            self._next += 1
            yield item
