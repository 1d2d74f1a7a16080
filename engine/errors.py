"""The errors that users see: one sentence each, saying what is wrong, where, and what to do.

Every error that the engine raises on purpose is an `EngineError`; the command line prints it without a
traceback and exits with a code other than 0. A message never contains a secret.
"""

from __future__ import annotations

import json
import re
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What moves a terminal's cursor, breaks a line of a log, or changes the order of what is shown."""


class EngineError(Exception):
    """What went wrong, in one sentence that a user can act on."""

    retryable = False
    """Whether the same operation may succeed later without a change by the user."""
    unproven = False
    """Whether a definition is not certain, and nothing is committed yet: the run begins again at once."""
    corrupt = False
    """Whether damaged bytes are the cause."""


def printable(text: str) -> str:
    """`text` as it can be shown on a terminal: control characters as `\\u001b`, except for tabs and newlines.

    Names and messages come from servers. An object of JSON remains the same object.
    """
    return _CONTROL.sub(lambda found: json.dumps(found[0])[1:-1], text)


def os_error_sentence(error: OSError) -> str:
    """What cannot be used, and why."""
    what = "a file or socket" if error.filename is None else error.filename
    return f"{what} cannot be used: {error.strerror or error}"


class BinlogError(EngineError):
    """Bytes that are not a valid binlog, with their file and position.

    `file` and `position` are those of the start of the event; `reason` is the message without them. `corrupt`
    is False for events that are intact, but that the engine cannot decode.
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
        """Of the event's bytes (`engine.binlog.fingerprint`); empty if these bytes are unknown."""
        self.skippable = skippable
        """Whether a stream may continue after the damage."""

    def __reduce__(self) -> tuple[type[BinlogError], tuple[Any, ...]]:
        values = self.file, self.position, self.reason, self.corrupt, self.fingerprint, self.skippable
        return type(self), values


class EventError(EngineError):
    """A broken event, located only by an offset in its bytes.

    Sans-IO decoders raise it, since they do not know the file. `offset` is the byte offset inside the event
    (or the payload) at which decoding failed. Callers turn it into a `BinlogError`.
    """

    corrupt = True

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(f"{reason} (byte {offset} of the event)")
        self.reason = reason
        self.offset = offset

    def __reduce__(self) -> tuple[type[EventError], tuple[str, int]]:
        return type(self), (self.reason, self.offset)


class UnsupportedError(EventError):
    """An event that may be intact, but has contents that the engine does not support, or exceeds a limit."""

    corrupt = False


class ConnectionFailed(EngineError):
    """The server cannot be reached, or the connection was lost: a later attempt may succeed."""

    retryable = True
