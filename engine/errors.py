"""The errors that users see: one sentence each, saying what is wrong, where, and what to do.

Every error that the engine raises on purpose is an `EngineError`; the command line prints it without a
traceback and exits with a code other than 0. No message ever holds a secret.
"""

from __future__ import annotations

from typing import Any


class EngineError(Exception):
    """What went wrong, in one sentence that a user can act on."""

    retryable = False
    """Whether the same thing may succeed later without anybody doing anything."""
    corrupt = False
    """Whether damaged bytes are to blame."""


class BinlogError(EngineError):
    """Bytes that are no valid binlog, with the place where they are.

    `file` and `position` name the start of the offending event; `reason` is the bare reason. Not `corrupt`
    are those that are sound, but more than we can read.
    """

    def __init__(
        self,
        file: str,
        position: int,
        reason: str,
        corrupt: bool = True,
        fingerprint: str = "",
        skippable: bool = True,
    ) -> None:
        super().__init__(f"{file} at position {position}: {reason}")
        self.file = file
        self.position = position
        self.reason = reason
        self.corrupt = corrupt
        self.fingerprint = fingerprint
        """Of the event's bytes (`engine.binlog.fingerprint`), where it is known which bytes these are."""
        self.skippable = skippable
        """Whether a stream may go on after the damage."""

    def __reduce__(self) -> tuple[type[BinlogError], tuple[Any, ...]]:
        values = self.file, self.position, self.reason, self.corrupt, self.fingerprint, self.skippable
        return type(self), values


class EventError(EngineError):
    """A broken event, located only by its place in the bytes at hand.

    Sans-IO decoders raise it: they do not know the file. `offset` is the byte offset inside the event
    (or the payload) where the decoder gave up. Callers turn it into a `BinlogError`.
    """

    corrupt = True

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(f"{reason} (byte {offset} of the event)")
        self.reason = reason
        self.offset = offset

    def __reduce__(self) -> tuple[type[EventError], tuple[str, int]]:
        return type(self), (self.reason, self.offset)


class UnsupportedError(EventError):
    """An event that may well be sound, but says what nobody here understands, or more than is allowed."""

    corrupt = False


class ConnectionFailed(EngineError):
    """The server cannot be reached, or the connection was lost: trying again later may help."""

    retryable = True
