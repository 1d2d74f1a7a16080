"""Writes tables and plots of the results into the repository: `python -m perf report`.

The README contains the figures between its markers, `perf/results/README.md` every case with all its peers
and processes; the plots are in the same folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from perf.cases import CASES
from perf.plots import draw_plots
from perf.records import read_records
from perf.report import markdown_details, markdown_summary, text_figures, write_between_markers

_REPOSITORY = Path(__file__).parents[1]
RESULTS = _REPOSITORY / "perf" / "results"
_README = _REPOSITORY / "README.md"


def publish(folder: Path) -> None:
    """Write tables and plots from the results in `folder`."""
    records = read_records(folder, CASES)
    plots = draw_plots([record.result for record in records], RESULTS)
    shown = "\n".join(f"![{plot.title}]({plot.path.relative_to(_REPOSITORY)})" for plot in plots)
    more = "Every case with all its peers and processes: [perf/results](perf/results/README.md)."
    write_between_markers(_README, f"{markdown_summary(records)}\n\n{more}\n\n{shown}")
    (RESULTS / "README.md").write_text(markdown_details(records), "utf-8")


def main(arguments: Sequence[str]) -> int:
    """The command line tool."""
    parser = argparse.ArgumentParser(prog="python -m perf report", description=__doc__.split("\n\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder with the JSON [perf/results]")
    options = parser.parse_args(arguments)
    publish(options.results)
    print(text_figures([record.result for record in read_records(options.results, CASES)]))
    return 0
