"""Results as JSON files, one per case, and back: tables and plots are made from the files.

So a case that was measured again by itself takes its place beside the others, and what the tables say is
what the files hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perf.case import CaseResult, PeerResult
from perf.measurement import Measurement, Usage


@dataclass(frozen=True)
class Record:
    """A case's result, and what it was measured on and with."""

    result: CaseResult
    machine: Mapping[str, Any]
    settings: Mapping[str, Any]

    def write(self, folder: Path) -> None:
        """Write the case's file."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.result.name}.json").write_text(self.json() + "\n", "utf-8")

    def json(self) -> str:
        """Every single run, and medians for people who look."""
        result = self.result
        told = {
            "case": result.name,
            "title": result.title,
            "group": result.group,
            "measures": result.measures,
            "compares": result.compares,
            "machine": dict(self.machine),
            "settings": dict(self.settings),
            "rows": result.rows,
            "binlog_bytes": result.bytes,
            "peers": {peer.name: _peer_object(result, peer) for peer in result.peers},
        }
        return json.dumps(told, indent=1, ensure_ascii=False)


def read_records(folder: Path, cases: Iterable[str]) -> list[Record]:
    """The records of those of the cases that have been measured, in their order."""
    files = (folder / f"{case}.json" for case in cases)
    return [read_record(file) for file in files if file.exists()]


def read_record(file: Path) -> Record:
    """The record in a file."""
    told = json.loads(file.read_text("utf-8"))
    result = CaseResult(
        name=told["case"],
        title=told["title"],
        group=told["group"],
        rows=told["rows"],
        bytes=told["binlog_bytes"],
        peers=[_peer_result(name, peer) for name, peer in told["peers"].items()],
        measures=told["measures"],
        compares=told["compares"],
    )
    return Record(result, told["machine"], told["settings"])


def _peer_object(result: CaseResult, peer: PeerResult) -> dict[str, Any]:
    if not peer.runs:
        return {"remark": peer.remark, "skipped": peer.skipped or "no run"}
    return {
        "remark": peer.remark,
        "median_seconds": peer.seconds,
        **({"rows_per_second": result.rows / peer.seconds} if result.rows else {}),
        **({"engine_rate_multiple": result.ratio(peer)} if result.compares else {}),
        "start_up_seconds": peer.start_up_seconds,
        "runs": [asdict(run) for run in peer.runs],
    }


def _peer_result(name: str, told: Mapping[str, Any]) -> PeerResult:
    runs = [
        Measurement(
            **{
                **run,
                "processes": {process: Usage(**usage) for process, usage in run["processes"].items()},
            }
        )
        for run in told.get("runs", ())
    ]
    return PeerResult(name, told["remark"], runs, told.get("skipped"))
