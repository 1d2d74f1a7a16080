"""Standard input, output and error of the command, made usable before anything reads or writes them.

A caller may have closed one of them: then `/dev/null` takes its place, since the next file or socket would
get its number, and what is meant for a terminal would be written there. Characters that the encoding of the
output lacks are escaped as in JSON, so that an object of JSON remains the same object.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys

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
    codecs.register_error(_ESCAPED, _escaped)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=_ESCAPED)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
