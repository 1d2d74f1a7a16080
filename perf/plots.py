"""The results as pictures: the figures against what is asked of them, latency, and scaling.

Drawn with matplotlib, which the development extra has; without it there are no pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from perf.case import CaseResult
from perf.figures import FIGURES

_REACHED, _MISSED, _NEUTRAL = "#2a7f62", "#c8553d", "#4a6fa5"
_DOTS_PER_INCH = 110


@dataclass(frozen=True)
class Plot:
    """A picture that was drawn."""

    title: str
    path: Path


def draw_plots(results: Sequence[CaseResult], folder: Path) -> list[Plot]:
    """Draw what there are results for."""
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
    axes.set_yticks(places, [f"{figure.what} / {figure.against}" for figure, _ in reached], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("reached, as a multiple of what is asked (more is better)")
    _tidy(axes)
    return picture


_PLOTS: dict[str, tuple[str, Callable[[Any, Mapping[str, CaseResult]], Any]]] = {
    "figures": ("what is reached, against what is asked", _draw_figures),
}


def _tidy(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
