"""The answers over HTTP: a table of paths, each with a function of what is watched, such as a monitor.

The table of a monitor is that of `run`, and in a fleet that of each source, below a path of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TypeVar

from engine.monitoring.figures import Figures
from engine.monitoring.health import not_alive, not_ready
from engine.monitoring.monitor import Monitor
from engine.monitoring.openmetrics import exposition
from engine.monitoring.pages import PageName, page
from engine.monitoring.server import TEXT, Answer
from engine.monitoring.status import status_json

Watched = TypeVar("Watched")
Paths = Mapping[str, Callable[[Watched, str], Answer]]
"""Path → its answer, given what is watched and the `Accept` header of the request."""


def answer_of(paths: Paths[Watched], watched: Watched, path: str, accept: str, *, below: str = "") -> Answer:
    """The answer to a path of the table, or which paths there are; `below`: where the table's paths begin."""
    answer = paths.get(path)
    if answer is None:
        return not_found(f"there are: {' '.join(below + known for known in paths)}")
    return answer(watched, accept)


def monitor_answer(monitor: Monitor, path: str, accept: str, *, below: str = "") -> Answer:
    """The answer to a path of a monitor."""
    return answer_of(_PATHS, monitor, path, accept, below=below)


def not_found(sentence: str) -> Answer:
    """There is nothing at that path."""
    return Answer(f"{sentence}\n".encode(), TEXT, HTTPStatus.NOT_FOUND)


def probe_answer(problems: Sequence[str]) -> Answer:
    """200 without problems, else 503 with a line for each."""
    lines = "".join(f"{line}\n" for line in problems or ["ok"])
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    return Answer(lines.encode(), TEXT, status)


def json_answer(content: bytes) -> Answer:
    """One JSON object."""
    return Answer(content, "application/json")


def page_answer(name: PageName) -> Answer:
    """A page for people."""
    document = page(name)
    return Answer(document.content, "text/html; charset=utf-8", policy=document.policy)


def _probe(problems: Callable[[Figures], list[str]]) -> Callable[[Monitor, str], Answer]:
    return lambda monitor, accept: probe_answer(problems(monitor.figures()))


_PATHS: Paths[Monitor] = {
    "/": lambda monitor, accept: page_answer("status"),
    "/metrics": lambda monitor, accept: Answer(*exposition(monitor.figures(), accept)),
    "/livez": _probe(not_alive),
    "/readyz": _probe(not_ready),
    "/status.json": lambda monitor, accept: json_answer(
        status_json(monitor.figures(), monitor.history.columns())
    ),
}
