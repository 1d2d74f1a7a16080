"""`dataclass` as in the standard library, for classes that are created at every start.

The standard library compiles up to six methods for each class, one by one, which took a third of the time in
which a command starts. Here a class gets an `__eq__`, `__hash__` and `__repr__` that are not compiled for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(**options: bool) -> Callable[[type], type]:
        """As `dataclasses.dataclass`, without the options `order`, `repr` and `unsafe_hash`."""
        return lambda each: _dataclass(each, **options)


__all__ = ["dataclass"]


def _dataclass(written: type, *, eq: bool = True, frozen: bool = False, **options: bool) -> type:
    made: type[Any] = dataclasses.dataclass(written, eq=False, repr=False, frozen=frozen, **options)
    fields = dataclasses.fields(made)
    methods: dict[str, Any] = {"__repr__": _repr_of([each.name for each in fields if each.repr])}
    if eq:
        values = _values([each.name for each in fields if each.compare])
        methods |= {"__eq__": _eq_of(values), "__hash__": _hash_of(values) if frozen else None}
    for name, method in methods.items():
        # A class with `__eq__` has a `__hash__` in any case: None.
        if name not in written.__dict__ or written.__dict__[name] is None:
            setattr(made, name, method)
    return made


def _values(names: Sequence[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _: ()


def _eq_of(values: Callable[[Any], Any]) -> Callable[[Any, object], Any]:
    def __eq__(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash_of(values: Callable[[Any], Any]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _repr_of(names: Sequence[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    return __repr__
