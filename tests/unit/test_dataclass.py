"""`engine.dataclass` makes classes that behave like those of the standard library."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from engine.dataclass import dataclass

Decorator = Callable[..., Any]
FORMS: list[dict[str, bool]] = [
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "eq": False},
    {"slots": True},
    {"frozen": True},
]


def of_two_fields(decorator: Decorator, form: dict[str, bool]) -> Any:
    @decorator(**form)
    class Example:
        """With a field that is a secret, and one that does not count."""

        name: str
        secret: bytes = dataclasses.field(repr=False)
        seen: int = dataclasses.field(default=0, compare=False)
        parts: tuple[Any, ...] = dataclasses.field(default_factory=tuple)

    return Example


def of_no_field(decorator: Decorator, form: dict[str, bool]) -> Any:
    @decorator(**form)
    class Empty:
        """Nothing."""

    return Empty


def with_own_methods(decorator: Decorator, form: dict[str, bool]) -> Any:
    @decorator(**form)
    class Own:
        """Equal to every other one."""

        number: int = 1

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __repr__(self) -> str:
            return "own"

    return Own


@dataclass(frozen=True, slots=True)
class Kept:
    """A class that pickle finds."""

    number: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Longer(Kept):
    """With a field more."""

    more: int = 3


def facts(
    make: Callable[[Decorator, dict[str, bool]], Any], decorator: Decorator, form: dict[str, bool]
) -> Any:
    """What can be observed of a class of that form and of its instances."""
    cls = make(decorator, form)
    values: dict[str, Any] = {"name": "a", "secret": b"s"} if "name" in cls.__annotations__ else {}
    one, same = cls(**values), cls(**values)
    seen = [repr(one), one == same, one != same, one == 3, cls.__hash__ is None, hasattr(one, "__dict__")]
    if cls.__hash__ is not None and form.get("eq", True):
        seen.append(hash(one) == hash(same))
    for name in values:
        changed = dataclasses.replace(one, **{name: values[name] * 2})
        seen += [one == changed, repr(changed), dataclasses.asdict(changed)]
    if "seen" in cls.__annotations__:
        seen.append(one == dataclasses.replace(one, seen=5))
        # A value that contains itself.
        object.__setattr__(one, "parts", (one,))
        seen.append(repr(one))
    for change in (partial(setattr, one, "name", "b"), partial(delattr, one, "name")):
        try:
            change()
            seen.append("changed")
        except (AttributeError, TypeError) as error:
            seen.append(str(error))
    return seen


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("make", [of_two_fields, of_no_field, with_own_methods])
def test_as_in_the_standard_library(
    make: Callable[[Decorator, dict[str, bool]], Any], form: dict[str, bool]
) -> None:
    assert facts(make, dataclass, form) == facts(make, dataclasses.dataclass, form)


def test_inherited_copied_and_sent() -> None:
    longer = Longer(1, "x")
    assert (longer, hash(longer)) == (Longer(1, "x", 3), hash(Longer(1, "x", 3)))
    assert longer != Kept(1, "x")
    assert repr(longer) == "Longer(number=1, text='x', more=3)"
    assert [each.name for each in dataclasses.fields(longer)] == ["number", "text", "more"]
    assert pickle.loads(pickle.dumps(longer)) == longer
    match longer:
        case Kept(number, text):
            assert (number, text) == (1, "x")
