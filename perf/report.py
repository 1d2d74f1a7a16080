"""Formats measurements as tables: text for a terminal, Markdown for the repository.

Every table contains medians, rates, and the engine's rate as a multiple of each peer's, including the peers
that are faster than the engine; skipped peers are listed with the reason. Empty columns are omitted. Tables
of figures have a column for each kind of machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from perf.case import CaseResult, PeerResult
from perf.figures import FIGURES, Figure
from perf.machine import machine_title
from perf.records import Record

Table = Sequence[Sequence[str]]
"""Lines of cells, headings first. Cells of the first column, and of columns without a heading, are text."""
Machines = Sequence[Sequence[Record]]
"""The records of each kind of machine."""

MISSED = "**missed**"
NOT_MEASURED = "not measured"
_MULTIPLES = "“× peer” and “engine is” are the engine's rate as a multiple of the peer's."
_PROCESS_HEADINGS = ("", "user s", "system s", "peak RSS MB", "PSS MB")


def figures_table(results: Sequence[CaseResult]) -> Table:
    """Each figure as asked and as reached."""
    by_name = {result.name: result for result in results}
    lines: list[Sequence[str]] = [("", "against", "asked", "reached", "")]
    for figure in FIGURES:
        reached = figure.reach(by_name)
        cells = (
            ("", NOT_MEASURED) if reached is None else (_quantity(figure, reached), _verdict(figure, reached))
        )
        lines.append(
            (figure.what, figure.against, f"{_sign(figure)} {_quantity(figure, figure.asked)}", *cells)
        )
    return lines


def case_table(result: CaseResult) -> Table:
    """One line per peer, headings first."""
    values = dict.fromkeys(name for peer in result.peers for run in peer.runs for name in run.values)
    columns = [*_columns(result), *(_value_column(name) for name in values), ("", _remark)]
    lines = [[heading for heading, _ in columns]]
    lines += [[cell(peer) for _, cell in columns] for peer in result.peers]
    return _without_empty_columns(lines)


def overview_table(results: Sequence[CaseResult]) -> Table:
    """One line per case of a group: the engine's rate, also as a multiple of each peer's."""
    peers = list(dict.fromkeys(peer.name for result in results for peer in result.peers[1:]))
    lines: list[Sequence[str]] = [("", "engine rows/s", *(f"× {name}" for name in peers))]
    for result in results:
        ratios = {peer.name: result.ratio(peer) for peer in result.peers}
        row_ratios = (ratios.get(name) for name in peers)
        rate = f"{result.rows / result.engine.seconds:,.0f}" if result.engine.runs else "failed"
        lines.append(
            (result.name, rate, *("–" if ratio is None else _three_digits(ratio) for ratio in row_ratios))
        )
    return lines


def process_table(result: CaseResult) -> Table:
    """Processor time and memory, one line per process of each peer, headings first."""
    lines: list[Sequence[str]] = [_PROCESS_HEADINGS]
    for peer in result.peers:
        for name, usage in peer.process_medians().items():
            label = name if name == peer.name else f"{peer.name}: {name}"
            shared = "" if usage.proportional_memory is None else f"{usage.proportional_memory / 1e6:,.0f}"
            seconds = f"{usage.user_seconds:.2f}", f"{usage.system_seconds:.2f}"
            lines.append((label, *seconds, f"{usage.peak_memory / 1e6:,.0f}", shared))
    return _without_empty_columns(lines)


def text_report(result: CaseResult) -> str:
    """The case for a terminal."""
    lines = [f"{_heading(result)}; {result.group}", *aligned(case_table(result))]
    processes = process_table(result)
    if len(processes) > 1:
        lines += [
            "",
            "where processor time and memory went (medians; start-up included but for extrapolated)",
        ]
        lines += aligned(processes)
    return "\n".join(lines)


def text_figures(results: Sequence[CaseResult]) -> str:
    """The figures for a terminal."""
    return "\n".join(aligned([[cell.strip("*") for cell in line] for line in figures_table(results)]))


def markdown_headlines(machines: Machines) -> str:
    """For the README: the most telling figures of each machine, those included that are missed."""
    lines: list[Sequence[str]] = [("", "against", *map(_title, machines))]
    for figure in FIGURES:
        reached = [figure.reach(_by_name(records)) for records in machines] if figure.headline else []
        if any(value is not None for value in reached):
            lines.append((figure.what, figure.against, *(_reached(figure, value) for value in reached)))
    conditions = [f"- {_conditions(records)}" for records in machines]
    return "\n".join([*markdown(lines), "", f"{_MULTIPLES} The machines:", "", *conditions])


def markdown_figures(machines: Machines) -> str:
    """All figures, as asked and as each machine reached them."""
    lines: list[Sequence[str]] = [("", "against", "asked", *map(_title, machines))]
    tables = [figures_table([record.result for record in records])[1:] for records in machines]
    for cells in zip(*tables, strict=True):
        what, against, asked = cells[0][:3]
        verdicts = (", ".join(filter(None, (value, verdict))) for *_, value, verdict in cells)
        lines.append((what, against, asked, *verdicts))
    return "\n".join(markdown(lines))


def markdown_summary(records: Sequence[Record]) -> str:
    """A line for each case that compares."""
    parts: list[str] = []
    for group, members in _groups([record.result for record in records]).items():
        if members[0].compares:
            parts += ["", f"**{group}**", "", *markdown(overview_table(members))]
    return "\n".join(parts[1:])


def markdown_details(records: Sequence[Record]) -> str:
    """Every case with all its peers and processes."""
    parts = []
    for group, members in _groups([record.result for record in records]).items():
        parts += ["", f"## {group[0].upper()}{group[1:]}"]
        for member in members:
            parts += ["", f"### {_heading(member)}", "", *markdown(case_table(member))]
            processes = process_table(member)
            if len(processes) > 1:
                parts += ["", *markdown(processes)]
    return "\n".join(parts)


def markdown_page(records: Sequence[Record], plots: Sequence[str]) -> str:
    """Everything on one page: the summary, the plots (Markdown images), the details."""
    shown = "\n".join(plots)
    conditions = f"{_conditions(records)} {_MULTIPLES}"
    head = f"# Measured: {_title(records)}\n\n{conditions}\n\n{markdown_summary(records)}\n\n{shown}"
    return f"{head}\n{markdown_details(records)}\n"


def write_between_markers(file: Path, text: str, name: str = "perf") -> bool:
    """Write `text` between the markers of that name in a file; False if it has none (or does not exist)."""
    if not file.exists():
        return False
    marked = re.compile(rf"(<!-- {name}:start -->\n).*?(<!-- {name}:end -->)", re.DOTALL)
    before = file.read_text("utf-8")
    after, count = marked.subn(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", before)
    if count:
        file.write_text(after, "utf-8")
    return bool(count)


def _columns(result: CaseResult) -> list[tuple[str, Callable[[PeerResult], str]]]:
    """Headings and cell functions of the columns that all cases have."""

    def when_run(cell: Callable[[PeerResult], str]) -> Callable[[PeerResult], str]:
        return lambda peer: cell(peer) if peer.runs else ""

    def spread(peer: PeerResult) -> str:
        every = [run.seconds for run in peer.runs]
        return f"{min(every):.3f} – {max(every):.3f}"

    def per_second(amount: float) -> Callable[[PeerResult], str]:
        known = amount and result.measures == "seconds"
        return when_run(lambda peer: f"{amount / peer.seconds:,.0f}" if known else "")

    def multiple(peer: PeerResult) -> str:
        ratio = result.ratio(peer) if result.compares and peer is not result.engine else None
        return "" if ratio is None else f"× {_three_digits(ratio)}"

    def start_up(peer: PeerResult) -> str:
        return "" if peer.start_up_seconds is None else f"{peer.start_up_seconds:.2f}"

    return [
        ("", lambda peer: peer.name),
        (result.measures, when_run(lambda peer: f"{peer.seconds:.3f}")),
        ("min – max", when_run(spread)),
        ("rows/s", per_second(result.rows)),
        ("MB/s", per_second(result.bytes / 1e6)),
        ("engine is", multiple),
        ("start-up s", start_up),
    ]


def _value_column(name: str) -> tuple[str, Callable[[PeerResult], str]]:
    def cell(peer: PeerResult) -> str:
        value = peer.value(name)
        return "" if value is None else _three_digits(value)

    return name, cell


def _remark(peer: PeerResult) -> str:
    return peer.remark if peer.runs else f"skipped: {_first_sentence(peer.skipped or 'no run')}"


def _conditions(records: Sequence[Record]) -> str:
    machine = records[-1].machine
    repeats = sorted({int(record.settings["repeat"]) for record in records})
    *others, most = map(str, repeats)
    runs = f"{', '.join(others)} or {most}" if others else most
    return (
        f"{machine['cores']} cores of {_title(records)}, {machine['memory_gb']} GB, {_disk(records)}, Python "
        f"{machine['python']}; medians of {runs} interleaved runs."
    )


def _disk(records: Sequence[Record]) -> str:
    """The disk's figures, medians of the cases that have them."""
    with_disk = [record.machine for record in records if "file_system" in record.machine]
    if not with_disk:
        return "its disk not measured"
    rate, flush = (
        median(float(machine[fact]) for machine in with_disk)
        for fact in ("disk_mb_per_second", "disk_flush_ms")
    )
    return f"{with_disk[-1]['file_system']} that writes {rate:,.0f} MB/s and flushes in {flush:.2f} ms"


def _title(records: Sequence[Record]) -> str:
    return machine_title(records[-1].machine)


def _by_name(records: Sequence[Record]) -> Mapping[str, CaseResult]:
    return {record.result.name: record.result for record in records}


def _groups(results: Sequence[CaseResult]) -> Mapping[str, list[CaseResult]]:
    groups: dict[str, list[CaseResult]] = {}
    for result in results:
        groups.setdefault(result.group, []).append(result)
    return groups


def _heading(result: CaseResult) -> str:
    amount = f"; {result.rows:,} rows, {result.bytes / 1e6:,.0f} MB" if result.rows else ""
    return f"{result.name}: {result.title}{amount}"


def _sign(figure: Figure) -> str:
    return "≥" if figure.at_least else "≤"


def _reached(figure: Figure, value: float | None) -> str:
    return NOT_MEASURED if value is None else _quantity(figure, value)


def _quantity(figure: Figure, amount: float) -> str:
    number = f"{amount:,.0f}" if amount >= 1000 else f"{amount:.3g}"
    return f"× {number}" if figure.unit == "×" else f"{number} {figure.unit}"


def _verdict(figure: Figure, reached: float) -> str:
    return "reached" if figure.score(reached) >= 1 else MISSED


def _three_digits(number: float) -> str:
    return f"{number:.2f}" if number < 10 else f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def _first_sentence(text: str) -> str:
    return text.split("\n")[0][:160]


def _without_empty_columns(lines: Table) -> Table:
    kept = [index for index in range(len(lines[0])) if any(line[index] for line in lines[1:])]
    return [[line[index] for index in kept] for line in lines]


def _texts(lines: Table) -> Sequence[bool]:
    return [index == 0 or heading in ("", "against") for index, heading in enumerate(lines[0])]


def aligned(lines: Table) -> list[str]:
    """Pad columns to the width of their widest cell; text is left-aligned, numbers are right-aligned."""
    texts = _texts(lines)
    widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
    return [
        "  ".join(
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(line, widths, texts, strict=True)
        ).rstrip()
        for line in lines
    ]


def markdown(lines: Table) -> list[str]:
    heading, *rest = (f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
    rule = "| " + " | ".join("---" if text else "---:" for text in _texts(lines)) + " |"
    return [heading, rule, *rest]
