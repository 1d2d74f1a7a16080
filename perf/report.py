"""Measurements as tables for people (text, Markdown) and as JSON for programs.

Every table says the same: medians, rates, and the engine's rate as a multiple of each peer's, those included
that the engine loses against, and peers that were left out with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perf.case import CaseResult, PeerResult

_MARKED = re.compile(r"(<!-- perf:start -->\n).*?(<!-- perf:end -->)", re.DOTALL)
_HEADINGS = ("", "seconds", "min – max", "rows/s", "MB/s", "engine is", "start-up s", "")
_PROCESS_HEADINGS = ("", "user s", "system s", "peak MB")


def case_table(result: CaseResult) -> list[Sequence[str]]:
    """One line per peer, headings first."""
    return [_HEADINGS, *(_peer_line(result, peer) for peer in result.peers)]


def overview_table(results: Sequence[CaseResult]) -> list[Sequence[str]]:
    """One line per case of a group: the engine's rate, and what multiple of each peer's it is."""
    peers = list(dict.fromkeys(peer.name for result in results for peer in result.peers[1:]))
    lines: list[Sequence[str]] = [("", "engine rows/s", *(f"× {name}" for name in peers))]
    for result in results:
        ratios = {peer.name: result.ratio(peer) for peer in result.peers}
        told = (ratios.get(name) for name in peers)
        rate = f"{result.rows / result.engine.seconds:,.0f}" if result.engine.runs else "failed"
        lines.append((result.name, rate, *("–" if ratio is None else _three_digits(ratio) for ratio in told)))
    return lines


def process_table(result: CaseResult) -> list[Sequence[str]]:
    """Where processor time and memory went, one line per process of each peer, headings first."""
    lines: list[Sequence[str]] = [_PROCESS_HEADINGS]
    for peer in result.peers:
        for name, (user, system, memory) in peer.process_medians().items():
            label = name if name == peer.name else f"{peer.name}: {name}"
            lines.append((label, f"{user:.2f}", f"{system:.2f}", f"{memory / 1e6:,.0f}"))
    return lines


def text_report(result: CaseResult) -> str:
    """The case for a terminal."""
    return "\n".join(
        [
            f"{result.name}: {result.title}; {_amount(result)}; {result.group}",
            *_aligned(case_table(result)),
            "",
            "where processor time and memory went (medians; start-up included but for extrapolated ones)",
            *_aligned(process_table(result)),
        ]
    )


def markdown_report(results: Sequence[CaseResult], machine: Mapping[str, Any], repetitions: int) -> str:
    """All cases for the README."""
    parts = [
        f"{machine['cores']} cores of {machine['processor']}, {machine['memory_gb']} GB, Python "
        f"{machine['python']}; medians of {repetitions} interleaved runs. “engine is” is the engine's rate "
        "as a multiple of the peer's.",
    ]
    for group in dict.fromkeys(result.group for result in results):
        members = [result for result in results if result.group == group]
        parts += ["", f"**{group}**", "", *_markdown(overview_table(members))]
    for result in results:
        parts += ["", f"<details><summary>{result.name}</summary>", "", f"{result.title}; {_amount(result)}"]
        parts += ["", *_markdown(case_table(result)), "", *_markdown(process_table(result)), "", "</details>"]
    return "\n".join(parts)


def json_report(result: CaseResult, machine: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """One case with every single run."""
    return json.dumps(
        {
            "case": result.name,
            "title": result.title,
            "machine": dict(machine),
            "settings": dict(settings),
            "rows": result.rows,
            "binlog_bytes": result.bytes,
            "peers": {peer.name: _peer_object(result, peer) for peer in result.peers},
        },
        indent=1,
    )


def write_between_markers(file: Path, text: str) -> bool:
    """Put `text` between the perf markers of a file; false where it has none (or does not exist)."""
    if not file.exists():
        return False
    before = file.read_text("utf-8")
    after, count = _MARKED.subn(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", before)
    if count:
        file.write_text(after, "utf-8")
    return bool(count)


def _peer_line(result: CaseResult, peer: PeerResult) -> Sequence[str]:
    if not peer.runs:
        return (peer.name, "", "", "", "", "", "", f"skipped: {_first_sentence(peer.skipped or 'no run')}")
    every = [run.seconds for run in peer.runs]
    ratio = result.ratio(peer)
    start_up = peer.start_up_seconds
    return (
        peer.name,
        f"{peer.seconds:.3f}",
        f"{min(every):.3f} – {max(every):.3f}",
        f"{result.rows / peer.seconds:,.0f}",
        f"{result.bytes / peer.seconds / 1e6:,.0f}",
        "" if peer is result.engine or ratio is None else f"× {_three_digits(ratio)}",
        "" if start_up is None else f"{start_up:.2f}",
        peer.remark,
    )


def _peer_object(result: CaseResult, peer: PeerResult) -> dict[str, Any]:
    if not peer.runs:
        return {"skipped": peer.skipped}
    return {
        "median_seconds": peer.seconds,
        "rows_per_second": result.rows / peer.seconds,
        "engine_rate_multiple": result.ratio(peer),
        "start_up_seconds": peer.start_up_seconds,
        "remark": peer.remark,
        "runs": [asdict(run) for run in peer.runs],
    }


def _amount(result: CaseResult) -> str:
    return f"{result.rows:,} rows, {result.bytes / 1e6:,.0f} MB"


def _three_digits(number: float) -> str:
    return f"{number:.2f}" if number < 10 else f"{number:.1f}" if number < 100 else f"{number:,.0f}"


def _first_sentence(text: str) -> str:
    return text.split("\n")[0][:160]


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell; text to the left, numbers to the right."""
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 or cell == line[-1] == "" or place == 7 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def _markdown(lines: Sequence[Sequence[str]]) -> list[str]:
    heading, *rest = (f"| {' | '.join(line)} |" for line in lines)
    rule = "| " + " | ".join("---" if place == 0 else "---:" for place in range(len(lines[0]))) + " |"
    return [heading, rule, *rest]
