"""Consumers: named readers of an output, with the last commit that each does not need any more.

A consumer is a small file in the output folder. `vacuum` and retention keep every commit after it.
"""

from __future__ import annotations

import re
import time

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.output.files import opening, writing
from engine.output.log_json import Malformed, from_line, to_line
from engine.output.storage import OutputPlace, storage_of

FOLDER = "_consumers"
_SUFFIX = ".json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class Consumer:
    """How far a consumer has read."""

    name: str
    commit: int
    """The last commit that it has read; -1 for none."""
    time_us: int
    """When it said so, µs since the epoch."""


def check_name(name: str) -> str:
    """The name itself. Raises `ValueError`, which says what is expected."""
    if not _NAME.fullmatch(name):
        raise ValueError("a name of letters, digits, `_`, `.` and `-` that begins with a letter or digit")
    return name


def note_progress(out: OutputPlace, name: str, commit: int) -> None:
    """Record that a consumer has read the commits up to `commit`; registers it if it is new.

    A smaller number than before counts, too: the consumer has gone back. Raises `OutputError`.
    """
    with writing(out / FOLDER):
        consumer = Consumer(name, commit, time.time_ns() // 1000)
        storage_of(out).replace(_file(name), to_line(consumer) + b"\n")


def remove_consumer(out: OutputPlace, name: str) -> None:
    """Forget a consumer. Raises `EngineError` if there is none of that name."""
    if name not in (consumer.name for consumer in consumers(out)):
        known = ", ".join(consumer.name for consumer in consumers(out)) or "none"
        raise EngineError(f"{out} has no consumer `{name}`: it has {known}")
    with writing(out / FOLDER):
        storage_of(out).remove([_file(name)])


def consumers(out: OutputPlace) -> list[Consumer]:
    """All consumers of an output, by name. Raises `EngineError` if one cannot be read."""
    found = []
    with opening(out / FOLDER):
        storage = storage_of(out)
        for name in storage.names(FOLDER):
            if not name.endswith(_SUFFIX):
                continue
            try:
                found.append(from_line(Consumer, storage.read(f"{FOLDER}/{name}")))
            except FileNotFoundError:
                continue
            except Malformed as error:
                raise EngineError(
                    f"{out / FOLDER / name} is damaged: {error}; remove the file, and the consumer registers "
                    "again"
                ) from error
    return found


def _file(consumer: str) -> str:
    return f"{FOLDER}/{consumer}{_SUFFIX}"
