"""Restores the order of the decoders' results by the sequence numbers that the network process assigned.

No result is dropped, and each is returned as soon as all before it have been. The network process limits the
batches that are in the pipeline at a time, which bounds the number of results held here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from engine.errors import EngineError

Item = TypeVar("Item")


class Reorder(Generic[Item]):
    """Items by sequence number, returned in the order 0, 1, 2… without gaps."""

    def __init__(self) -> None:
        self._next = 0
        self._waiting: dict[int, Item] = {}

    def __len__(self) -> int:
        """The number of items that wait for an earlier one."""
        return len(self._waiting)

    def push(self, sequence: int, item: Item) -> Iterator[Item]:
        """Add one item, and return all items that are next in order now.

        Raises `EngineError` for a repeated number, which is a bug in the engine.
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
