"""A client's session on the archive server: its variables, and the evaluation of SQL expressions.

Expressions are system variables, user variables, literals and a few functions, each in one table.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import field

from engine.dataclass import dataclass
from engine.net.archive_server.archive import Archive
from engine.net.protocol.commands import Replica
from engine.net.protocol.packets import ServerError

Value = str | None
STRING = re.compile(r"'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"", re.DOTALL)
"""A string literal in single or double quotes."""
_LARGEST_NUMBER = 19
"""The number of digits of the largest number that a variable holds."""
_SHORTEST_HEARTBEAT = 0.001


@dataclass(slots=True)
class Session:
    """One client's session: its user, and the user variables with which a replica describes itself."""

    archive: Archive
    connection_id: int
    user: str
    variables: dict[str, Value] = field(default_factory=dict)
    """User variables by lower-case name, without the @."""
    replicas: dict[int, Replica] = field(default_factory=dict)
    """The registered replicas by connection id; shared by all sessions."""
    database: Value = None

    @property
    def announced_checksum(self) -> Value:
        """The checksum algorithm that the client announced; None if it announced none."""
        return self._either("source_binlog_checksum", "master_binlog_checksum")

    @property
    def heartbeat_seconds(self) -> float:
        """The client's heartbeat period in seconds, which it sets in nanoseconds; 0 for no heartbeats."""
        period = _number_in(self._either("source_heartbeat_period", "master_heartbeat_period"))
        return max(period / 1e9, _SHORTEST_HEARTBEAT) if period else 0.0

    @property
    def connect_state(self) -> Value:
        """The GTIDs after which a MariaDB replica starts; None if it starts at a position."""
        return self.variables.get("slave_connect_state")

    @property
    def replica_uuid(self) -> Value:
        """The UUID that the client set; None if it set none."""
        return self._either("replica_uuid", "slave_uuid")

    def _either(self, name: str, old_name: str) -> Value:
        return self.variables.get(name) or self.variables.get(old_name)


_CONSTANT_VARIABLES: dict[str, str] = {
    "auto_increment_increment": "1",
    "autocommit": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "character_set_client": "utf8mb4",
    "character_set_connection": "utf8mb4",
    "character_set_database": "utf8mb4",
    "character_set_results": "utf8mb4",
    "character_set_server": "utf8mb4",
    "character_set_system": "utf8mb3",
    "collation_connection": "utf8mb4_general_ci",
    "collation_database": "utf8mb4_general_ci",
    "collation_server": "utf8mb4_general_ci",
    "hostname": "archive",
    "init_connect": "",
    "interactive_timeout": "28800",
    "license": "",
    "log_bin": "ON",
    "lower_case_table_names": "0",
    "max_allowed_packet": "1073741824",
    "net_read_timeout": "30",
    "net_write_timeout": "60",
    "performance_schema": "OFF",
    "read_only": "ON",
    "rpl_semi_sync_master_enabled": "OFF",
    "rpl_semi_sync_source_enabled": "OFF",
    "sql_mode": "",
    "super_read_only": "ON",
    "system_time_zone": "UTC",
    "time_zone": "SYSTEM",
    "transaction_isolation": "REPEATABLE-READ",
    "tx_isolation": "REPEATABLE-READ",
    "version_comment": "binlog archive",
    "wait_timeout": "28800",
}
_COMPUTED_VARIABLES: dict[str, Callable[[Session], str]] = {
    "binlog_checksum": lambda session: "CRC32" if session.archive.last.format.checksum_length else "NONE",
    "binlog_row_metadata": lambda session: "FULL" if session.archive.names_columns else "MINIMAL",
    "pseudo_thread_id": lambda session: str(session.connection_id),
    "server_id": lambda session: str(session.archive.last.server_id),
    "timestamp": lambda session: str(int(time.time())),
    "version": lambda session: session.archive.last.format.server_version,
}
_FLAVOR_VARIABLES: dict[str, dict[str, Callable[[Session], str]]] = {
    "mysql": {
        "gtid_executed": lambda session: session.archive.executed_gtid_set,
        "gtid_mode": lambda session: "ON" if session.archive.has_gtids else "OFF",
        "gtid_owned": lambda session: "",
        "gtid_purged": lambda session: session.archive.purged_gtid_set,
        "server_uuid": lambda session: session.archive.server_uuid,
    },
    "mariadb": {
        "gtid_binlog_pos": lambda session: session.archive.executed_gtid_set,
        "gtid_current_pos": lambda session: session.archive.executed_gtid_set,
        "gtid_domain_id": lambda session: "0",
    },
}
"""Computed on demand: for some, the newest file is read."""
_SWITCHES = {"ON": "1", "OFF": "0"}
_ENUMERATIONS = ("gtid_mode",)
"""Variables for which SELECT returns ON and OFF instead of 1 and 0."""


def system_variable(name: str, session: Session) -> Value:
    """The value of a system variable as in SHOW VARIABLES; None if there is no such variable."""
    computed = _COMPUTED_VARIABLES | _FLAVOR_VARIABLES[session.archive.last.format.flavor]
    return computed[name](session) if name in computed else _CONSTANT_VARIABLES.get(name)


def variable_names(session: Session) -> list[str]:
    """The names of all system variables of the archive's flavor."""
    return [
        *_CONSTANT_VARIABLES,
        *_COMPUTED_VARIABLES,
        *_FLAVOR_VARIABLES[session.archive.last.format.flavor],
    ]


def _system_variable(match: re.Match[str], session: Session) -> Value:
    name = match[1].lower()
    value = system_variable(name, session)
    if value is None:
        raise ServerError(1193, "HY000", f"Unknown system variable '{match[1]}'")
    return value if name in _ENUMERATIONS else _SWITCHES.get(value, value)


def _user_variable(match: re.Match[str], session: Session) -> Value:
    return session.variables.get(match[1].lower())


def _string(match: re.Match[str], session: Session) -> Value:
    return unquote(match[0])


def _number(match: re.Match[str], session: Session) -> Value:
    return match[0]


def _null(match: re.Match[str], session: Session) -> Value:
    return None


def _function(match: re.Match[str], session: Session) -> Value:
    function = _FUNCTIONS.get(match[1].upper())
    if function is None:
        raise ServerError(1305, "42000", f"FUNCTION {match[1]} does not exist")
    return function([value_of(argument, session) for argument in split_list(match[2])], session)


_EXPRESSIONS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Session], Value]], ...] = (
    (re.compile(r"@@(?:(?:GLOBAL|SESSION|LOCAL)\s*\.\s*)?`?(\w+)`?", re.IGNORECASE), _system_variable),
    (re.compile(r"@`?([\w.$]+)`?"), _user_variable),
    (STRING, _string),
    (re.compile(r"-?\d+(?:\.\d+)?"), _number),
    (re.compile(r"NULL", re.IGNORECASE), _null),
    (re.compile(r"(\w+)\s*\(([^()]*)\)"), _function),
)


def _gtid_position(arguments: list[Value], session: Session) -> Value:
    """MariaDB's BINLOG_GTID_POS(file, position)."""
    if len(arguments) != 2 or arguments[0] is None:
        return None
    binlogs = session.archive.starting_at(arguments[0])
    return session.archive.gtid_set_at(binlogs[0], _number_in(arguments[1])) if binlogs else None


def _number_in(value: Value) -> int:
    """A variable's value as a number; 0 if it is not a number."""
    return int(value) if value and value.isdecimal() and len(value) <= _LARGEST_NUMBER else 0


_FUNCTIONS: dict[str, Callable[[list[Value], Session], Value]] = {
    "BINLOG_GTID_POS": _gtid_position,
    "CONNECTION_ID": lambda arguments, session: str(session.connection_id),
    "CURRENT_USER": lambda arguments, session: f"{session.user}@%",
    "DATABASE": lambda arguments, session: session.database,
    "NOW": lambda arguments, session: time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
    "SCHEMA": lambda arguments, session: session.database,
    "UNIX_TIMESTAMP": lambda arguments, session: str(int(time.time())),
    "USER": lambda arguments, session: f"{session.user}@%",
    "VERSION": lambda arguments, session: session.archive.last.format.server_version,
}


def is_expression(text: str) -> bool:
    """Whether the whole of `text` is an expression that `value_of` can evaluate."""
    return any(pattern.fullmatch(text) for pattern, _ in _EXPRESSIONS)


def value_of(expression: str, session: Session) -> Value:
    """The value of an expression; raises `ServerError` for one that is not supported."""
    text = expression.strip()
    for pattern, evaluate in _EXPRESSIONS:
        if match := pattern.fullmatch(text):
            return evaluate(match, session)
    raise unsupported_syntax(text)


def unsupported_syntax(text: str) -> ServerError:
    """The error for a statement or expression that is not supported, for the caller to raise."""
    return ServerError(1064, "42000", f"This server of archived binlogs does not support: {text[:80]}")


def split_list(text: str) -> Iterator[str]:
    """The parts of `text` between commas; commas inside strings and parentheses do not separate parts."""
    depth, start, offset = 0, 0, 0
    while offset < len(text):
        if string := STRING.match(text, offset):
            offset = string.end()
            continue
        character = text[offset]
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            yield text[start:offset].strip()
            start = offset + 1
        offset += 1
    if rest := text[start:].strip():
        yield rest


def unquote(literal: str) -> str:
    """The text of a string literal."""
    quote = literal[0]
    return re.sub(r"\\(.)", r"\1", literal[1:-1].replace(quote * 2, quote), flags=re.DOTALL)
