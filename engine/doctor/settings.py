"""The server's settings: a table of what each should be and why, and the statement that changes it.

A rule applies to servers that have its variable; of several names the first that the server has counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from engine.dataclass import dataclass
from engine.doctor.finding import Finding, Level
from engine.net.client.connection import Connection
from engine.net.client.explained import explained

Variables = Mapping[str, str]
"""Global variables by name in lower case; truths are ON and OFF."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What one variable should be."""

    names: tuple[str, ...]
    is_right: Callable[[str, Variables], bool]
    expected: str
    level: Level
    why: str
    remedy: str
    """With `{name}` for the variable's name on this server."""


def read_variables(connection: Connection) -> dict[str, str]:
    """All global variables; needs no privilege. Raises `Refusal`."""
    with explained(connection):
        rows = connection.query("SHOW GLOBAL VARIABLES")
        return {(name or "").lower(): value or "" for name, value in rows}


def check_settings(variables: Variables) -> Iterator[Finding]:
    """A finding for each rule that applies."""
    for rule in _RULES:
        name = next((name for name in rule.names if name in variables), None)
        if name is None:
            continue
        value = variables[name]
        if rule.is_right(value, variables):
            yield Finding(name, value or "empty")
        else:
            remedy = rule.remedy.format(name=name)
            yield Finding(name, value or "empty", rule.level, rule.expected, rule.why, remedy)


def _is(*expected: str) -> Callable[[str, Variables], bool]:
    return lambda value, variables: value.upper() in expected


def _at_least(least: int) -> Callable[[str, Variables], bool]:
    return lambda value, variables: int(value) >= least


def _documents_are_whole(value: str, variables: Variables) -> bool:
    return "PARTIAL_JSON" not in value or variables.get("binlog_row_image") == "FULL"


def _definitions_are_learned(value: str, variables: Variables) -> bool:
    return value == "OFF" or variables.get("binlog_row_metadata") != "FULL"


_PACKET = 16 << 20
_SET = "SET GLOBAL {name} = "
_GTID_STEPS = (
    "SET GLOBAL enforce_gtid_consistency = ON, then SET GLOBAL gtid_mode = OFF_PERMISSIVE, ON_PERMISSIVE and "
    "ON, one after the other (MySQL 5.6: both and log_slave_updates in the option file, and a restart)"
)

_RULES = (
    Rule(
        ("log_bin",),
        _is("ON"),
        "ON",
        "required",
        "without it there is no binlog",
        "set log_bin in the server's option file and restart the server",
    ),
    Rule(
        ("binlog_storage_engine",),
        _is(""),
        "empty",
        "required",
        "events of a binlog in InnoDB have no positions, which the engine needs",
        "remove {name} from the server's option file and restart the server",
    ),
    Rule(
        ("server_id",),
        _at_least(1),
        "a number from 1 on, of its own",
        "required",
        "with 0 the server refuses replicas",
        _SET + "1, or another number that no other server of the topology has",
    ),
    Rule(
        ("binlog_format",),
        _is("ROW"),
        "ROW",
        "required",
        "changes that are logged as statements are missing in the tables' rows",
        _SET + "'ROW' (sessions that are connected keep the old value)",
    ),
    Rule(
        ("binlog_row_image",),
        _is("FULL"),
        "FULL",
        "advice",
        "otherwise row images lack columns: undoing, mirrors and replays need them",
        _SET + "'FULL' (sessions that are connected keep the old value)",
    ),
    Rule(
        ("binlog_row_value_options",),
        _documents_are_whole,
        "empty, or binlog_row_image FULL",
        "advice",
        "JSON columns contain differences in place of documents",
        _SET + "''",
    ),
    Rule(
        ("binlog_row_metadata",),
        _is("FULL"),
        "FULL",
        "advice",
        "the binlog then contains column names; otherwise the engine follows DDL and asks the server",
        _SET + "'FULL'",
    ),
    Rule(
        ("gtid_mode",),
        _is("ON"),
        "ON",
        "advice",
        "with GTIDs a run continues at another server of the topology, and snapshots need fewer locks",
        _GTID_STEPS,
    ),
    Rule(
        ("binlog_checksum",),
        _is("CRC32"),
        "CRC32",
        "advice",
        "without checksums damage is not noticed",
        _SET + "'CRC32'",
    ),
    Rule(
        ("binlog_transaction_compression",),
        _definitions_are_learned,
        "OFF, or binlog_row_metadata MINIMAL",
        "advice",
        "tables with rows in compressed transactions only have no definition that an ALTER could change",
        _SET + "OFF",
    ),
    Rule(
        ("log_replica_updates", "log_slave_updates"),
        _is("ON"),
        "ON",
        "advice",
        "a server that is a replica itself logs nothing of what it replicates",
        "set {name} in the server's option file and restart the server",
    ),
    Rule(
        ("sync_binlog",),
        _is("1"),
        "1",
        "advice",
        "after a power failure the server may lack transactions that the output has",
        _SET + "1",
    ),
    Rule(
        ("max_allowed_packet",),
        _at_least(_PACKET),
        f"{_PACKET} or more",
        "advice",
        "a snapshot cannot read a row that is larger",
        _SET + f"{4 * _PACKET}",
    ),
)
