"""Plots of the results: the figures relative to their targets, latency, and scaling.

They are drawn with matplotlib, which the development extra includes; without it there are no plots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from perf.case import CaseResult
from perf.figures import FIGURES, Figure
from perf.latency import ALLOWED_SECONDS, INTERVALS, LOADS, condition
from perf.memory import PROPORTIONAL
from perf.scaling import GIGABYTES, WORKERS, size_name

_REACHED, _MISSED, _NEUTRAL = "#2a7f62", "#c8553d", "#4a6fa5"
_DOTS_PER_INCH = 110


@dataclass(frozen=True)
class Plot:
    """A plot in a file."""

    title: str
    path: Path


def draw_plots(results: Sequence[CaseResult], folder: Path) -> list[Plot]:
    """Draw the plots for which there are results."""
    if find_spec("matplotlib") is None:
        return []
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    by_name = {result.name: result for result in results}
    drawn = []
    for name, (title, draw) in _PLOTS.items():
        figure = draw(pyplot, by_name)
        if figure is not None:
            path = folder / f"{name}.png"
            figure.savefig(path, dpi=_DOTS_PER_INCH, bbox_inches="tight", metadata={"Software": None})
            pyplot.close(figure)
            drawn.append(Plot(title, path))
    return drawn


def _draw_figures(pyplot: Any, results: Mapping[str, CaseResult]) -> Any:
    reached = [(figure, value) for figure in FIGURES if (value := figure.reach(results)) is not None]
    if not reached:
        return None
    scores = [figure.score(value) for figure, value in reached]
    picture, axes = pyplot.subplots(figsize=(9, 0.4 + 0.27 * len(reached)))
    places = range(len(reached))
    colours = [_REACHED if score >= 1 else _MISSED for score in scores]
    axes.barh(places, [score - 1 for score in scores], left=1, color=colours, height=0.7)
    for place, score in zip(places, scores, strict=True):
        axes.annotate(
            f"{score:.2g}",
            (score, place),
            xytext=(3 if score >= 1 else -3, 0),
            textcoords="offset points",
            ha="left" if score >= 1 else "right",
            va="center",
            fontsize=8,
        )
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlim(min([0.5, *scores]) / 1.3, max([2, *scores]) * 1.3)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_yticks(places, [_label(figure) for figure, _ in reached], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("reached, as a multiple of what is asked (more is better)")
    _tidy(axes)
    return picture


def _label(figure: Figure) -> str:
    return f"{figure.what} / {figure.against}" if figure.against else figure.what


def _draw_latency(pyplot: Any, results: Mapping[str, CaseResult]) -> Any:
    case = results.get("latency")
    if case is None or not any(peer.runs for peer in case.peers):
        return None
    picture, panels = pyplot.subplots(1, len(INTERVALS), figsize=(9, 2.8))
    for axes, interval in zip(panels, INTERVALS, strict=True):
        for name, colour in (("p50 ms", _NEUTRAL), ("p99 ms", _MISSED), ("max ms", "grey")):
            points = [
                (load * 100, value)
                for load in LOADS
                if (peer := case.peer(condition(interval, load))) and (value := peer.value(name)) is not None
            ]
            axes.plot(*zip(*points, strict=True), "o-", color=colour, label=name.removesuffix(" ms"))
        axes.axhline((interval + ALLOWED_SECONDS) * 1000, color="black", linestyle=":", linewidth=1)
        axes.set_title(f"commits every {interval * 1000:,.0f} ms", fontsize=9)
        axes.set_xticks([load * 100 for load in LOADS])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("% of the highest load", fontsize=8)
        _tidy(axes)
    panels[0].set_ylabel("ms from commit to reader", fontsize=8)
    panels[0].legend(fontsize=8, frameon=False)
    picture.tight_layout()
    return picture


def _draw_scaling(pyplot: Any, results: Mapping[str, CaseResult]) -> Any:
    by_workers = [case for name, case in results.items() if name.startswith("workers-") and case.engine.runs]
    sizes = [results[name] for name in map(size_name, GIGABYTES) if name in results]
    sizes = [case for case in sizes if case.engine.runs]
    if not by_workers and not sizes:
        return None
    picture, (workers, seconds, memory) = pyplot.subplots(1, 3, figsize=(9, 2.8))
    for case, colour in zip(by_workers, (_NEUTRAL, _REACHED, _MISSED), strict=False):
        peers = [(number, peer) for number, peer in zip(WORKERS, case.peers, strict=True) if peer.runs]
        rates = [case.rows / peer.seconds / 1e6 for _, peer in peers]
        workers.plot([number for number, _ in peers], rates, "o-", color=colour, label=case.name[8:])
    workers.set_xticks(WORKERS)
    workers.set_ylim(bottom=0)
    workers.set_xlabel("decoder processes", fontsize=8)
    workers.set_ylabel("million rows/s", fontsize=8)
    if by_workers:
        workers.legend(fontsize=8, frameon=False)
    gigabytes = [case.bytes / 1e9 for case in sizes]
    seconds.plot(gigabytes, [case.engine.seconds for case in sizes], "o-", color=_NEUTRAL)
    seconds.set_ylabel("seconds", fontsize=8)
    memory.plot(gigabytes, [case.engine.value(PROPORTIONAL) for case in sizes], "o-", color=_NEUTRAL)
    memory.set_ylabel("MB, all processes (PSS)", fontsize=8)
    for axes in (seconds, memory):
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("GB of binlog", fontsize=8)
    for axes in (workers, seconds, memory):
        _tidy(axes)
    picture.tight_layout()
    return picture


_PLOTS: dict[str, tuple[str, Callable[[Any, Mapping[str, CaseResult]], Any]]] = {
    "figures": ("what is reached, against what is asked", _draw_figures),
    "latency": ("latency by load and commit interval", _draw_latency),
    "scaling": ("decoder processes, and the length of the binlog", _draw_scaling),
}


def _tidy(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
