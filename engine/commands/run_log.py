"""The log of a run: one line for each happening, with its time, its level and the id of the run.

`text` is for people; `json` has one object per line, with the values that the sentence is about as fields of
their own. Lines go to standard error, above the progress bar if there is one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from engine.errors import printable
from engine.pipeline.observer import Happening

LogFormat = Literal["text", "json"]

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class RunLog:
    """Writes happenings of at least `level` to a stream."""

    def __init__(self, stream: TextIO, log_format: LogFormat, level: str, run: str) -> None:
        self.stream = stream
        self.run = run
        # Not registered with the logging module: two runs in one process must not share a logger.
        self._logger = logging.Logger("binlog-engine", _LEVELS[level])
        handler = _Handler(stream)
        handler.setFormatter(_Formatter(_FORMATS[log_format], run))
        self._logger.addHandler(handler)

    def write(self, happening: Happening) -> None:
        """Write one line, if its level is high enough."""
        self._logger.log(_LEVELS[happening.level], happening.message, extra={"happening": happening})


class _Handler(logging.Handler):
    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        # Imported late, since a command that logs nothing starts faster.
        from tqdm import tqdm

        # It clears the bar first, and draws it again below the line.
        tqdm.write(self.format(record), file=self._stream)
        self._stream.flush()


class _Formatter(logging.Formatter):
    def __init__(self, line: Callable[[str, str, Happening], str], run: str) -> None:
        super().__init__()
        self._line = line
        self._run = run

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        happening: Happening = record.__dict__["happening"]
        return printable(self._line(moment.replace("+00:00", "Z"), self._run, happening))


def _text(moment: str, run: str, happening: Happening) -> str:
    values = "".join(f" {name}={_json(value)}" for name, value in happening.values.items())
    message = " ".join(happening.message.split())
    return f"{moment} {happening.level.upper()} {run} {happening.name}: {message}{values}"


def _as_object(moment: str, run: str, happening: Happening) -> str:
    head = {"time": moment, "level": happening.level, "run": run, "event": happening.name}
    return _json({**head, "message": happening.message, **happening.values})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


_FORMATS = {"text": _text, "json": _as_object}
