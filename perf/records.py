"""Writes and reads results as JSON files, one per case, in a folder for each kind of machine.

Tables and plots are generated from the files, so a single case can be measured again and replaces its old
result, and the tables always agree with the files.
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
    """A case's result, with the machine and the settings of the measurement."""

    result: CaseResult
    machine: Mapping[str, Any]
    settings: Mapping[str, Any]

    def write(self, folder: Path) -> None:
        """Write the case's file."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.result.name}.json").write_text(self.json() + "\n", "utf-8")

    def json(self) -> str:
        """Every single run, and medians for readers of the file."""
        result = self.result
        content = {
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
        return json.dumps(content, indent=1, ensure_ascii=False)


def read_machines(folder: Path, cases: Iterable[str]) -> dict[str, list[Record]]:
    """The records of each machine that has a folder in `folder`, by its name."""
    names = list(cases)
    machines = {path.name: read_records(path, names) for path in sorted(folder.iterdir()) if path.is_dir()}
    return {name: records for name, records in machines.items() if records}


def read_records(folder: Path, cases: Iterable[str]) -> list[Record]:
    """The records of those of the given cases that have been measured, in the same order."""
    files = (folder / f"{case}.json" for case in cases)
    return [read_record(file) for file in files if file.exists()]


def read_record(file: Path) -> Record:
    """The record in a file."""
    record = json.loads(file.read_text("utf-8"))
    result = CaseResult(
        name=record["case"],
        title=record["title"],
        group=record["group"],
        rows=record["rows"],
        bytes=record["binlog_bytes"],
        peers=[_peer_result(name, peer) for name, peer in record["peers"].items()],
        measures=record["measures"],
        compares=record["compares"],
    )
    return Record(result, record["machine"], record["settings"])


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


def _peer_result(name: str, record: Mapping[str, Any]) -> PeerResult:
    runs = [
        Measurement(
            **{
                **run,
                "processes": {process: Usage(**usage) for process, usage in run["processes"].items()},
            }
        )
        for run in record.get("runs", ())
    ]
    return PeerResult(name, record["remark"], runs, record.get("skipped"))
