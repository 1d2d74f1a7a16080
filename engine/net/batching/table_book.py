"""The table definitions of a stream, and which batch uses which.

A definition is identified by the hash of its table map, which the receive kernel looks up for each table map.
Its description is what the table map lacks. A batch contains the descriptions of the tables that it uses,
one for each name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

import numpy as np

from engine.dataclass import dataclass
from engine.kernels.kernel import Int64s
from engine.net.batching.definition_table import find_definition

_FIRST_SLOTS = 1024
MOST_DESCRIPTIONS = 20_000
"""Definitions to keep; the catalog is asked again for those that were forgotten."""

Description = bytes | None
"""The packed columns; None if the table map contains everything, or for tables that cannot be described."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The columns of a table at one point of the binlog."""

    hash: int
    """Of its table map."""
    name: str
    """The table's `table_key`."""
    description: Description
    wanted: bool = True


class TableBook:
    """Definitions by hash, and descriptions by number. `stamp` is the sequence number of a batch plus one."""

    def __init__(self) -> None:
        self.definitions: Int64s
        """The kernel's table of definitions: see `definition_table`."""
        self.used: Int64s
        """Number → stamp of the last batch that has such a table map; the kernel writes to it."""
        self._descriptions: list[tuple[str, Description]] = []
        self._numbers: dict[tuple[int, Description], int] = {}
        self._numbers_of: defaultdict[str, list[int]] = defaultdict(list)
        """Name → its definitions."""
        self._known = 0
        """Occupied slots of `definitions`."""
        self._carried: dict[str, bytes] = {}
        self._clear()

    def use_known(self, value: int, stamp: int) -> bool:
        """Note that the batch uses the definition with that hash; false if it is not known."""
        number = int(self.definitions[find_definition(self.definitions, value), 1])
        if number >= 0:
            self.used[number] = stamp
        return number >= 0

    def contradicts(self, definition: Definition, stamp: int) -> bool:
        """Whether the batch has another description for the same name: the table was altered since."""
        name, description = definition.name, definition.description
        in_use = (number for number in self._numbers_of.get(name, ()) if self.used[number] == stamp)
        others = [self._carried.get(name, description), *(self._descriptions[number][1] for number in in_use)]
        return any(other != description for other in others)

    def add(self, definition: Definition, stamp: int) -> None:
        """Add a definition that the batch uses."""
        # In this order: adding a definition may replace the array.
        number = self._add(definition)
        self.used[number] = stamp

    def add_ahead(self, definitions: Iterable[Definition], stamp: int) -> None:
        """Add definitions of tables whose table maps follow later in the stream.

        Those with another description for a known name are left out: a batch has one description for a name,
        and where to cut it is known only when the stream is there.
        """
        in_force = [self._descriptions[number] for number in self.definitions[self._occupied(), 1]]
        seen: dict[str, set[Description]] = {}
        for name, description in [*in_force, *self._in_use(stamp), *self._carried.items()]:
            seen.setdefault(name, set()).add(description)
        for each in definitions:
            if seen.setdefault(each.name, {each.description}) == {each.description}:
                self._add(each)

    def packed_columns(self, stamp: int) -> dict[str, bytes]:
        """Name → description of the tables that the batch uses, with those carried over to it."""
        return self._carried | self.used_packed_columns(stamp)

    def used_packed_columns(self, stamp: int) -> dict[str, bytes]:
        """The same without those carried over: of the table maps that were indexed for this batch."""
        return {name: description for name, description in self._in_use(stamp) if description is not None}

    def count_in_use(self, stamp: int) -> int:
        """How many definitions the batch uses, which is the last one or the next one."""
        return int(np.count_nonzero(self.used[: len(self._descriptions)] == stamp))

    def carry_over(self, packed_columns: dict[str, bytes]) -> None:
        """The next batch needs these as well: events that were indexed for the last batch moved to it."""
        self._carried = packed_columns

    def replace(self, name: str) -> None:
        """The next description of that name replaces the one that was carried over."""
        self._carried = {other: entry for other, entry in self._carried.items() if other != name}

    def forget(self, names: Collection[str]) -> None:
        """The definitions of these tables are unknown again: a statement may have changed them."""
        if not names:
            return
        for slot in self._occupied().tolist():
            if self._descriptions[int(self.definitions[slot, 1])][0] in names:
                # The search for a slot after this one may end here: that definition is then added again.
                self.definitions[slot, 1] = -1
                self._known -= 1

    def forget_all(self) -> None:
        """Every definition is unknown again."""
        self.definitions[:, 1] = -1
        self._known = 0
        self.carry_over({})

    def limit_memory(self) -> None:
        """Forget everything if there have been too many definitions."""
        if len(self._descriptions) > MOST_DESCRIPTIONS:
            self._clear()

    def _in_use(self, stamp: int) -> list[tuple[str, Description]]:
        used = self.used[: len(self._descriptions)]
        return [self._descriptions[number] for number in np.nonzero(used == stamp)[0].tolist()]

    def _occupied(self) -> Int64s:
        return np.flatnonzero(self.definitions[:, 1] >= 0)

    def _add(self, definition: Definition) -> int:
        key = definition.hash, definition.description
        number = self._numbers.setdefault(key, len(self._descriptions))
        if number == len(self._descriptions):
            self._descriptions.append((definition.name, definition.description))
            self._numbers_of[definition.name].append(number)
            if number == len(self.used):
                self.used = np.concatenate([self.used, np.zeros_like(self.used)])
        if 2 * self._known >= len(self.definitions):
            self._grow()
        slot = find_definition(self.definitions, definition.hash)
        self._known += int(self.definitions[slot, 1] < 0)
        self.definitions[slot] = (definition.hash, number, definition.wanted)
        return number

    def _clear(self) -> None:
        self.definitions = np.full((_FIRST_SLOTS, 3), -1, np.int64)
        self.used = np.zeros(_FIRST_SLOTS, np.int64)
        self._descriptions.clear()
        self._numbers.clear()
        self._numbers_of.clear()
        self._known = 0

    def _grow(self) -> None:
        known = self.definitions[self._occupied()]
        self.definitions = np.full((2 * len(self.definitions), 3), -1, np.int64)
        for row in known:
            self.definitions[find_definition(self.definitions, row[0])] = row
