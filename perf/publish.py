"""Writes tables and plots of the results into the repository: `python -m perf report`.

The README contains the most telling figures between its markers, and `docs/performance.md` all of them as
asked and as reached, both with a column for each kind of machine; `perf/results` has a folder for each, whose
page contains every case with all its peers and processes, with the plots beside it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from perf.cases import CASES
from perf.plots import draw_plots
from perf.records import Record, read_machines
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
    """Write tables and plots from the results in `folder`, which has a folder for each machine."""
    machines = read_machines(folder, CASES)
    for name, records in machines.items():
        _write_page(RESULTS / name, records)
    every = list(machines.values())
    write_between_markers(_TARGETS, markdown_figures(every), "targets")
    pages = " and ".join(f"[{name}](perf/results/{name}/README.md)" for name in machines)
    more = f"All cases, peers and processes, with plots: {pages}."
    write_between_markers(_README, f"{markdown_headlines(every)}\n\n{more}")


def main(arguments: Sequence[str]) -> int:
    """The command line tool."""
    parser = argparse.ArgumentParser(prog="python -m perf report", description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="has a folder of JSON for each machine [perf/results]"
    )
    options = parser.parse_args(arguments)
    publish(options.results)
    for name, records in read_machines(options.results, CASES).items():
        print(f"{name}\n{text_figures([record.result for record in records])}\n")
    return 0


def _write_page(folder: Path, records: Sequence[Record]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    plots = draw_plots([record.result for record in records], folder)
    images = [f"![{plot.title}]({plot.path.name})" for plot in plots]
    (folder / "README.md").write_text(markdown_page(records, images), "utf-8")
