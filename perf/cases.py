"""The table of all cases, by the names that the command line accepts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from perf.archive import ARCHIVE, archive_case
from perf.archive_first_pass import ARCHIVE_FIRST_PASS, archive_first_pass_case
from perf.archive_scaling import ARCHIVE_TASKS, archive_tasks_case
from perf.binlog import binlog_of, served
from perf.case import Case, Settings
from perf.fleet import fleet_case
from perf.latency import latency_case
from perf.mirror import LARGE, mirror_case
from perf.mirror import MANY as MIRROR_MANY
from perf.mirror_latency import mirror_latency_case
from perf.mirror_rounds import mirror_rounds_case
from perf.oltp import MANY, OLTP
from perf.peers.connector_java import ConnectorJavaFile, ConnectorJavaServer, ConnectorJavaText
from perf.peers.debezium import DebeziumEmbedded
from perf.peers.drain import SocketDrain
from perf.peers.engine import Engine
from perf.peers.engine_decoder import EngineDecoder
from perf.peers.go_mysql import GoMysqlFile, GoMysqlServer
from perf.peers.mysql_replication import MysqlReplication
from perf.peers.mysqlbinlog import MysqlBinlogRaw, MysqlBinlogVerbose
from perf.scaling import GIGABYTES, shards_case, size_case, size_name, workers_case
from perf.snapshot_lag import lag_case
from perf.snapshots import SNAPSHOTS
from perf.spark_columns import SPARK_COLUMNS, spark_columns_case
from perf.spark_read import SPARK_CASES, spark_case
from perf.spark_settings import SPARK_SETTINGS, spark_settings_case
from perf.start_up import start_up_case
from perf.workload import Workload
from perf.workloads import BULK, DECODED, JSON, LONG_STRINGS, ONE_TRANSACTION, SHORT, TRANSACTIONS

END_TO_END = "end to end: from the server to committed files, over plain TCP"
END_TO_END_TLS = "end to end: from the server to committed files, over TLS"
DECODE = "decode: from a file, on one core"


def end_to_end(workload: Workload, settings: Settings) -> Case[Any]:
    """The case of a workload from a server to disk, over plain TCP."""
    return Case(
        name=workload.name,
        title=workload.title,
        group=END_TO_END,
        material=partial(binlog_of, workload, settings.scale),
        offer=served,
        peers=(
            Engine(settings.work, settings.workers),
            SocketDrain(),
            MysqlBinlogRaw(settings.work),
            MysqlBinlogVerbose(settings.work),
            ConnectorJavaServer(),
            GoMysqlServer(),
            DebeziumEmbedded(settings.work),
            MysqlReplication(),
        ),
    )


def end_to_end_tls(workload: Workload, settings: Settings) -> Case[Any]:
    """The same over TLS, with the peers that can be configured to use it."""
    return replace(
        end_to_end(workload, settings),
        name=f"{workload.name}-tls",
        group=END_TO_END_TLS,
        offer=partial(served, tls=True),
        peers=(
            Engine(settings.work, settings.workers),
            SocketDrain(),
            MysqlBinlogRaw(settings.work),
            MysqlBinlogVerbose(settings.work),
        ),
    )


def short(settings: Settings) -> Case[Any]:
    """A run with few rows, with the peers that need no warm-up."""
    peers = (Engine(settings.work, settings.workers), SocketDrain(), MysqlBinlogRaw(settings.work))
    return replace(end_to_end(SHORT, settings), peers=peers)


def decoding(workload: Workload, settings: Settings) -> Case[Any]:
    """The case of one decoder on one core, from a file."""
    left_raw = (ConnectorJavaText(),) if workload in (JSON, LONG_STRINGS) else ()
    return Case(
        name=f"decode-{workload.name}",
        title=workload.title,
        group=DECODE,
        material=partial(binlog_of, workload, settings.scale),
        offer=served,
        peers=(EngineDecoder(), ConnectorJavaFile(), *left_raw, GoMysqlFile(), MysqlReplication()),
    )


CASES: dict[str, Callable[[Settings], Case[Any]]] = {
    "bulk": partial(end_to_end, BULK),
    "transactions": partial(end_to_end, TRANSACTIONS),
    "oltp": partial(end_to_end, OLTP),
    "many": partial(end_to_end, MANY),
    "short": short,
    "one-transaction": partial(end_to_end, ONE_TRANSACTION),
    "bulk-tls": partial(end_to_end_tls, BULK),
    "transactions-tls": partial(end_to_end_tls, TRANSACTIONS),
    **{f"decode-{workload.name}": partial(decoding, workload) for workload in DECODED},
    **{f"workers-{workload.name}": partial(workers_case, workload) for workload in (BULK, JSON)},
    "shards": shards_case,
    **{size_name(size): partial(size_case, size) for size in GIGABYTES},
    **{name: partial(spark_case, name) for name in SPARK_CASES},
    SPARK_COLUMNS: spark_columns_case,
    SPARK_SETTINGS: spark_settings_case,
    **SNAPSHOTS,
    "snapshot-lag": lag_case,
    **{name: partial(mirror_case, name) for name in (LARGE, MIRROR_MANY)},
    "mirror-latency": mirror_latency_case,
    "mirror-rounds": mirror_rounds_case,
    ARCHIVE: archive_case,
    ARCHIVE_TASKS: archive_tasks_case,
    ARCHIVE_FIRST_PASS: archive_first_pass_case,
    "start-up": start_up_case,
    "fleet": fleet_case,
    "latency": latency_case,
}
