"""What a message between processes is: a frozen dataclass that travels as one msgpack frame.

The frame is a map of field names to values; `unpack` checks every value against its declared type
(`engine.records`). Further frames may follow, whose number the receiver knows from the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.records import Misfit, pack, unpack

Frame = bytes | bytearray | memoryview


class DamagedMessage(EngineError):
    """A frame that is not a message of the expected class."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message that packs to one msgpack frame."""

    def pack(self) -> bytes:
        """The message as one frame."""
        return pack(self)

    @classmethod
    def unpack(cls, frame: Frame) -> Self:
        """The message of a frame that `pack` made. Raises `DamagedMessage`."""
        try:
            return unpack(cls, frame)
        except Misfit as error:
            raise DamagedMessage(
                f"a message between the engine's processes is not a valid {cls.__name__} ({error}): "
                "this is a bug, please report it"
            ) from error


def multipart(header: Message, *payload: Frame) -> Sequence[Frame]:
    """The frames of one ZeroMQ message."""
    return [header.pack(), *payload]


def require_frames(header: Message, payload: Sequence[Frame], expected: int) -> None:
    """Raise `DamagedMessage` unless so many frames came with the header."""
    if len(payload) != expected:
        raise DamagedMessage(
            f"a message between the engine's processes, {type(header).__name__}, has {len(payload)} frames "
            f"and not {expected}: this is a bug, please report it"
        )
