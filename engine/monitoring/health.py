"""Whether the engine is alive and ready: what is wrong, in sentences, from its figures.

*Alive* is about the processes: if one does not answer, the command has to be started again. *Ready* is about
the stream: it makes progress. A server that is away makes the engine not ready, but leaves it alive.
"""

from __future__ import annotations

from engine.monitoring.figures import Figures

SILENCE_SECONDS = 10.0
"""How long a process that has reported before may be silent. Each reports about once a second."""
_REPORT_SECONDS = 1.0
_INTERVALS = 3
"""After so many intervals without progress the stream is not ready."""


def not_alive(figures: Figures) -> list[str]:
    """Why the engine is not alive; empty if it is."""
    return [
        f"the {process.name} process ({process.pid}) has not answered for {process.silent_seconds:.0f} s"
        for process in figures.processes
        if process.has_reported and process.silent_seconds > SILENCE_SECONDS
    ]


def patience(figures: Figures) -> float:
    """How long the stream may go without progress, in seconds: three heartbeats or commit intervals."""
    return _INTERVALS * max(figures.intervals.heartbeat, figures.intervals.commit, _REPORT_SECONDS)


def not_ready(figures: Figures) -> list[str]:
    """Why the engine is not ready; empty if it is."""
    if not figures.is_running:
        return ["there is no connection to a server at the moment", *_last_warning(figures)]
    starting = [process.name for process in figures.processes if not process.has_reported]
    if starting or not figures.is_dumping:
        return [f"the run is starting (waiting for: {', '.join(starting) or 'the dump'})"]
    limit = patience(figures)
    reasons = not_alive(figures)
    if figures.stalled_seconds > limit:
        reasons.append(
            f"for {figures.stalled_seconds:.0f} s the sink has taken nothing, and the server has not said "
            "that there is nothing"
        )
    if figures.uncommitted_seconds > limit:
        reasons.append(
            f"a finished transaction has waited {figures.uncommitted_seconds:.0f} s to be committed"
        )
    return reasons


def _last_warning(figures: Figures) -> list[str]:
    return [figures.notices[-1].message] if figures.notices else []
