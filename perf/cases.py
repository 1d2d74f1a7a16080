"""The cases, as a table; what the command line offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from perf.binlog import binlog_of, served
from perf.case import Case
from perf.peers.connector_java import ConnectorJavaFile, ConnectorJavaServer
from perf.peers.drain import SocketDrain
from perf.peers.engine import Engine
from perf.peers.engine_decoder import EngineDecoder
from perf.peers.go_mysql import GoMysqlFile, GoMysqlServer
from perf.peers.mysql_replication import MysqlReplication
from perf.peers.mysqlbinlog import MysqlBinlogRaw, MysqlBinlogVerbose
from perf.workload import Workload
from perf.workloads import BULK, TRANSACTIONS, WORKLOADS

END_TO_END = "end to end: from the server to committed files, over plain TCP"
DECODE = "decode: from a file, on one core"


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
        group=END_TO_END,
        binlog=partial(binlog_of, workload, settings.scale),
        offer=served,
        peers=(
            Engine(settings.work, settings.workers),
            SocketDrain(),
            MysqlBinlogRaw(settings.work),
            MysqlBinlogVerbose(settings.work),
            ConnectorJavaServer(),
            GoMysqlServer(),
            MysqlReplication(),
        ),
    )


def decoding(workload: Workload, settings: Settings) -> Case[Any]:
    """One decoder on one core, from a file."""
    return Case(
        name=f"decode-{workload.name}",
        title=workload.title,
        group=DECODE,
        binlog=partial(binlog_of, workload, settings.scale),
        offer=served,
        peers=(EngineDecoder(), ConnectorJavaFile(), GoMysqlFile(), MysqlReplication()),
    )


CASES: dict[str, Callable[[Settings], Case[Any]]] = {
    "bulk": partial(end_to_end, BULK),
    "transactions": partial(end_to_end, TRANSACTIONS),
    **{f"decode-{name}": partial(decoding, workload) for name, workload in WORKLOADS.items()},
}
