"""What the batcher knows of tables: definitions seen, their descriptions, and which batch uses which.

A definition is known by the hash of its table map, which the receive kernel looks up event by event; a
description is what the catalog said of it. A batch carries the descriptions of the tables that it uses, one
for a name.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.kernels.kernel import Int64s
from engine.net.batching.receive_kernel import find_table

_FIRST_PLACES = 1024
MOST_DESCRIPTIONS = 20_000
"""Definitions of tables to remember; those that come again later are asked about again."""

Description = bytes | None
"""Packed columns, null where the binlog tells all (or nobody can tell)."""


class TableBook:
    """Definitions by hash, their descriptions by slot. `stamp` is a batch's sequence number plus one."""

    def __init__(self) -> None:
        self.places: Int64s
        """The kernel's open-addressed table: [place, (hash, slot, wanted)], slot -1 where free."""
        self.used: Int64s
        """Slot → stamp of the last batch that has such a table map; the kernel writes it."""
        self._descriptions: list[tuple[str, Description]] = []
        self._slots: dict[tuple[int, Description], int] = {}
        self._carried: dict[str, bytes] = {}
        self._clear()

    def meets_known(self, value: int, stamp: int) -> bool:
        """Whether the definition with that hash is known; then the batch uses it."""
        slot = int(self.places[find_table(self.places, value), 1])
        if slot >= 0:
            self.used[slot] = stamp
        return slot >= 0

    def is_described_otherwise(self, name: str, description: Description, stamp: int) -> bool:
        """Whether the batch already has another description for that name: the table was altered since."""
        in_use = [*self._in_use(stamp), (name, self._carried.get(name, description))]
        return any(other_name == name and other != description for other_name, other in in_use)

    def learn(self, value: int, name: str, description: Description, wanted: bool, stamp: int) -> None:
        """Take in a definition, which the batch uses."""
        self.used[self._add(value, name, description, wanted)] = stamp

    def learn_ahead(
        self, names: Mapping[int, str], descriptions: Mapping[int, Description], stamp: int
    ) -> None:
        """Take in definitions, by hash, of tables that are wanted and that the stream will come to.

        Not those that are described otherwise under the same name: a batch has one description for a name,
        and where to cut it turns out when the stream gets there.
        """
        in_force = [self._descriptions[slot] for slot in self.places[self.places[:, 1] >= 0, 1]]
        seen: dict[str, set[Description]] = {}
        for name, description in [*in_force, *self._in_use(stamp), *self._carried.items()]:
            seen.setdefault(name, set()).add(description)
        for value, description in descriptions.items():
            if seen.setdefault(names[value], {description}) == {description}:
                self._add(value, names[value], description, wanted=True)

    def _add(self, value: int, name: str, description: Description, wanted: bool) -> int:
        slot = self._slots.setdefault((value, description), len(self._descriptions))
        if slot == len(self._descriptions):
            self._descriptions.append((name, description))
            if slot == len(self.used):
                self.used = np.concatenate([self.used, np.zeros_like(self.used)])
        if 2 * np.count_nonzero(self.places[:, 1] >= 0) >= len(self.places):
            self._grow()
        self.places[find_table(self.places, value)] = (value, slot, wanted)
        return slot

    def catalog(self, stamp: int) -> dict[str, bytes]:
        """Name → description of the tables that the batch uses or was handed over."""
        return self._carried | self.used_catalog(stamp)

    def used_catalog(self, stamp: int) -> dict[str, bytes]:
        """The same without what was handed over: of the table maps that were indexed for this batch."""
        return {name: description for name, description in self._in_use(stamp) if description is not None}

    def count_in_use(self, stamp: int) -> int:
        """How many definitions the batch uses; only the last batch or the one to come may be asked about."""
        return int(np.count_nonzero(self.used[: len(self._descriptions)] == stamp))

    def hand_over(self, catalog: dict[str, bytes]) -> None:
        """The next batch needs these as well: events that were indexed for the last one moved to it."""
        self._carried = catalog

    def drop(self, name: str) -> None:
        """The next description of that name takes the place of the one that was handed over."""
        self._carried = {other: entry for other, entry in self._carried.items() if other != name}

    def doubt_all(self) -> None:
        """Every definition is unknown again: a table may have been altered since it was described."""
        self.places[:, 1] = -1
        self.hand_over({})

    def forget_many(self) -> None:
        """Begin anew where there have been so many definitions that they take too much memory."""
        if len(self._descriptions) > MOST_DESCRIPTIONS:
            self._clear()

    def _in_use(self, stamp: int) -> list[tuple[str, Description]]:
        used = self.used[: len(self._descriptions)]
        return [self._descriptions[slot] for slot in np.nonzero(used == stamp)[0].tolist()]

    def _clear(self) -> None:
        self.places = np.full((_FIRST_PLACES, 3), -1, np.int64)
        self.used = np.zeros(_FIRST_PLACES, np.int64)
        self._descriptions.clear()
        self._slots.clear()

    def _grow(self) -> None:
        known = self.places[self.places[:, 1] >= 0]
        self.places = np.full((2 * len(self.places), 3), -1, np.int64)
        for row in known:
            self.places[find_table(self.places, row[0])] = row
