"""A command with a log: all that its processes write to standard error becomes lines of the log.

Descriptor 2 of this process, and so of those that it starts, is a pipe meanwhile. A thread makes a line of
the log of each piece that comes through it, such as a traceback or the progress of compiling kernels. An
error that ends the command is a line, too.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.commands.run_log import RunLog
from engine.config.setting_groups import LogSettings
from engine.errors import EngineError, os_error_sentence
from engine.pipeline.observer import Happening
from engine.pipeline.standard_streams import messages_to
from engine.pipeline.stop_signals import signals_blocked

_PAUSE_MILLISECONDS = 50
"""What is written without such a pause is one piece: a traceback comes line by line."""
_MOST_BYTES = 1 << 16
_OWN_LINE = "binlog-engine: "
"""Lines of this kind say what goes on; anything else should not be there."""


def logged(settings: LogSettings, command: Callable[[RunLog], int]) -> int:
    """Run `command` with the log that `settings` ask for; returns its exit code, or 1 after an error."""
    assert settings.log_format is not None
    with messages_to(os.dup(2)) as stream:
        log = RunLog(stream, settings.log_format, settings.log_level, uuid.uuid4().hex[:8])
        try:
            with _standard_error_to(log):
                return command(log)
        except EngineError as error:
            failed = Happening("error", "failed", str(error))
        except OSError as error:
            failed = Happening("error", "failed", os_error_sentence(error))
        except Exception as error:
            bug = f"the command met a bug: {error!r}; please report it"
            failed = Happening("error", "failed", bug, {"traceback": traceback.format_exc()})
        log.write(failed)
        return 1


@contextmanager
def _standard_error_to(log: RunLog) -> Iterator[None]:
    before = os.dup(2)
    reading, writing = os.pipe()
    end_reading, end_writing = os.pipe()
    thread = threading.Thread(target=_read, args=(reading, end_reading, log), name="stderr", daemon=True)
    os.dup2(writing, 2)
    os.close(writing)
    with signals_blocked():
        thread.start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        # Other processes may have the pipe open for a moment more, so that it has no end yet.
        os.close(end_writing)
        thread.join()
        for descriptor in (before, reading, end_reading):
            os.close(descriptor)


def _read(reading: int, end: int, log: RunLog) -> None:
    """Write pieces to the log, until `end` is closed and nothing is left."""
    anything, more = select.poll(), select.poll()
    for poller in (anything, more):
        poller.register(reading, select.POLLIN)
    anything.register(end, select.POLLIN)
    while dict(anything.poll()).get(reading, 0) & select.POLLIN:
        piece = b""
        while len(piece) < _MOST_BYTES and more.poll(_PAUSE_MILLISECONDS):
            following = os.read(reading, _MOST_BYTES)
            piece += following
            if not following:
                break
        text = piece.decode(errors="backslashreplace").strip()
        is_own = all(line.startswith(_OWN_LINE) for line in text.splitlines())
        if text:
            log.write(Happening("info" if is_own else "warning", "stderr", text))
