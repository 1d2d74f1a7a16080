"""Writes tables and plots of the results into the repository: `python -m perf report`.

The README contains the most telling figures between its markers, and `docs/performance.md` all of them as
asked and as reached; `perf/results/README.md` contains every case with all its peers and processes, with the
plots beside it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from perf.cases import CASES
from perf.plots import draw_plots
from perf.records import read_records
from perf.report import (
    markdown_figures,
    markdown_headlines,
    markdown_page,
    text_figures,
    write_between_markers,
)

_REPOSITORY = Path(__file__).parents[1]
RESULTS = _REPOSITORY / "perf" / "results"
_README = _REPOSITORY / "README.md"
_TARGETS = _REPOSITORY / "docs" / "performance.md"


def publish(folder: Path) -> None:
    """Write tables and plots from the results in `folder`."""
    records = read_records(folder, CASES)
    plots = draw_plots([record.result for record in records], RESULTS)
    images = [f"![{plot.title}]({plot.path.name})" for plot in plots]
    (RESULTS / "README.md").write_text(markdown_page(records, images), "utf-8")
    write_between_markers(_TARGETS, markdown_figures(records), "targets")
    more = "All cases, peers and processes, with plots: [perf/results](perf/results/README.md)."
    write_between_markers(_README, f"{markdown_headlines(records)}\n\n{more}")


def main(arguments: Sequence[str]) -> int:
    """The command line tool."""
    parser = argparse.ArgumentParser(prog="python -m perf report", description=__doc__.split("\n\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder with the JSON [perf/results]")
    options = parser.parse_args(arguments)
    publish(options.results)
    print(text_figures([record.result for record in read_records(options.results, CASES)]))
    return 0
