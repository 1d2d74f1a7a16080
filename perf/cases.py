"""The cases, as a table; what the command line offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from perf.binlog import binlog_of, served
from perf.case import Case
from perf.peers.drain import SocketDrain
from perf.peers.engine import Engine
from perf.peers.mysql_replication import MysqlReplication
from perf.peers.mysqlbinlog import MysqlBinlogRaw
from perf.workload import Workload
from perf.workloads import BULK, TRANSACTIONS


@dataclass(frozen=True)
class Settings:
    """What the user of the harness chose."""

    scale: float
    """Of the workloads; 1 is full size."""
    workers: int
    """Decoder processes of the engine; 0 leaves it to the engine."""
    work: Path
    """Folder for what peers write; exists."""


def end_to_end(workload: Workload, settings: Settings) -> Case[Any]:
    """From a server to disk, over plain TCP."""
    return Case(
        name=workload.name,
        title=workload.title,
        binlog=partial(binlog_of, workload, settings.scale),
        offer=served,
        peers=(
            Engine(settings.work, settings.workers),
            SocketDrain(),
            MysqlBinlogRaw(settings.work),
            MysqlReplication(),
        ),
    )


CASES: dict[str, Callable[[Settings], Case[Any]]] = {
    "bulk": partial(end_to_end, BULK),
    "transactions": partial(end_to_end, TRANSACTIONS),
}
