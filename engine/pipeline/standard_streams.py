"""Standard input, output and error of the command, made usable before anything reads or writes them.

A caller may have closed one of them: then `/dev/null` takes its place, since the next file or socket would
get its number, and what is meant for a terminal would be written there. Characters that the encoding of the
output lacks are escaped as in JSON, so that an object of JSON remains the same object.

What standard error does not take is dropped: a log on a full disk, or whose reader has ended, does not end a
run.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from contextlib import suppress

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
_ESCAPED = "binlog-engine-escaped"


def prepare_standard_streams() -> None:
    """Open those that are closed, and have the output take every character."""
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            # Inherited by the engine's processes, as usual.
            os.dup2(opened, number)
            if opened != number:
                os.close(opened)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115
    sys.stderr = messages_to(2, sys.stderr.encoding, closefd=False)
    codecs.register_error(_ESCAPED, _escaped)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=_ESCAPED)


def messages_to(descriptor: int, encoding: str = "utf-8", *, closefd: bool = True) -> io.TextIOWrapper:
    """A stream that drops what cannot be written. `closefd`: the descriptor is closed with it."""
    file = open(descriptor, "wb", closefd=closefd)  # noqa: SIM115
    return _Messages(file, encoding=encoding, errors="backslashreplace", line_buffering=True)


class _Messages(io.TextIOWrapper):
    def write(self, text: str, /) -> int:
        with suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()

    def close(self) -> None:
        with suppress(OSError):
            super().close()


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
