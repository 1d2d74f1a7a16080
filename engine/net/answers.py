"""What the source that we serve answers to statements: the few that replicas, binlog tools and drivers ask.

A statement is matched against one table of patterns; SELECT lists and SET are understood as far as system
variables, user variables, literals and a handful of functions go. Everything else is refused by name.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from engine.net.archive import Archive
from engine.net.packets import ServerError
from engine.net.resultset import ResultSet
from engine.net.source import Replica

Value = str | None
MAX_STATEMENT = 8192
"""Characters of the longest statement that is looked at; drivers ask for less."""


@dataclass(slots=True)
class Session:
    """One client's session: who it is, and the user variables by which it says what kind of replica it is."""

    archive: Archive
    connection_id: int
    user: str
    variables: dict[str, Value] = field(default_factory=dict)
    """User variables by lower-case name, without the @."""
    replicas: dict[int, Replica] = field(default_factory=dict)
    """Replicas that are registered now, by connection id; shared by all sessions."""
    database: Value = None

    @property
    def announced_checksum(self) -> Value:
        """What the client set to say that it understands checksums."""
        return self._either("source_binlog_checksum", "master_binlog_checksum")

    @property
    def heartbeat_seconds(self) -> float:
        """How often the client wants a heartbeat; 0 for never."""
        period = self._either("source_heartbeat_period", "master_heartbeat_period")
        return int(period) / 1e9 if period and period.isdecimal() else 0.0

    @property
    def replica_uuid(self) -> Value:
        """What the client set as its UUID."""
        return self._either("replica_uuid", "slave_uuid")

    def _either(self, name: str, old_name: str) -> Value:
        return self.variables.get(name) or self.variables.get(old_name)


def answer(statement: str, session: Session) -> ResultSet:
    """The rows for a statement, none for one that returns none; raises `ServerError` as a server would."""
    text = _COMMENT.sub(" ", statement[:MAX_STATEMENT]).strip().rstrip(";").strip()
    if len(statement) > MAX_STATEMENT:
        raise _not_understood(text)
    for pattern, give in _STATEMENTS:
        if match := pattern.fullmatch(text):
            return give(match, session)
    raise _not_understood(text)


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
        "gtid_purged": lambda session: session.archive.purged_gtid_set,
        "server_uuid": lambda session: session.archive.server_uuid,
    },
    "mariadb": {
        "gtid_binlog_pos": lambda session: session.archive.executed_gtid_set,
        "gtid_current_pos": lambda session: session.archive.executed_gtid_set,
        "gtid_domain_id": lambda session: "0",
    },
}
"""Computed only when asked for: for some, the newest file is read."""
_SWITCHES = {"ON": "1", "OFF": "0"}
_ENUMERATIONS = ("gtid_mode",)
"""Variables whose ON is a word and not the number 1 in a SELECT."""


def _set(match: re.Match[str], session: Session) -> ResultSet:
    for assignment in _split(match["list"]):
        if target := _USER_VARIABLE_ASSIGNMENT.fullmatch(assignment):
            session.variables[target["name"].lower()] = _value(target["value"], session)
    return ResultSet()


def _select(match: re.Match[str], session: Session) -> ResultSet:
    columns: list[str] = []
    row: list[Value] = []
    for item in _split(match["list"]):
        aliased = None if _is_expression(item) else _ALIAS.fullmatch(item)
        columns.append(aliased["alias"] if aliased else item)
        row.append(_value(aliased["expression"] if aliased else item, session))
    return ResultSet(columns, [tuple(row)])


def _select_from(match: re.Match[str], session: Session) -> ResultSet:
    names = [item.rpartition(".")[2].strip("` ") for item in _split(match["list"])]
    return ResultSet(names)


def _variables(match: re.Match[str], session: Session) -> ResultSet:
    names = [
        *_CONSTANT_VARIABLES,
        *_COMPUTED_VARIABLES,
        *_FLAVOR_VARIABLES[session.archive.last.format.flavor],
    ]
    literals = [_unquote(literal) for literal in _STRING.findall(match["filter"] or "")]
    patterns = [_like(literal) for literal in literals] or [re.compile(".*")]
    wanted = sorted(name for name in names if any(pattern.fullmatch(name) for pattern in patterns))
    return ResultSet(("Variable_name", "Value"), [(name, _variable(name, session)) for name in wanted])


def _variable(name: str, session: Session) -> Value:
    """The value of a system variable as SHOW VARIABLES has it; null where there is none."""
    computed = _COMPUTED_VARIABLES | _FLAVOR_VARIABLES[session.archive.last.format.flavor]
    return computed[name](session) if name in computed else _CONSTANT_VARIABLES.get(name)


def _binary_logs(match: re.Match[str], session: Session) -> ResultSet:
    rows = [(binlog.name, str(binlog.size)) for binlog in session.archive.binlogs]
    return ResultSet(("Log_name", "File_size"), rows)


def _position(match: re.Match[str], session: Session) -> ResultSet:
    last = session.archive.last
    columns = ["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB"]
    row = [last.name, str(last.size), "", ""]
    if last.format.flavor == "mysql":
        columns.append("Executed_Gtid_Set")
        row.append(session.archive.executed_gtid_set)
    return ResultSet(columns, [tuple(row)])


def _replicas(match: re.Match[str], session: Session) -> ResultSet:
    source_id = str(session.archive.last.server_id)
    rows = [
        (str(replica.server_id), replica.host, str(replica.port), source_id, replica.uuid)
        for replica in list(session.replicas.values())
    ]
    return ResultSet(("Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"), rows)


def _grants(match: re.Match[str], session: Session) -> ResultSet:
    grant = f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `{session.user}`@`%`"
    return ResultSet((f"Grants for {session.user}@%",), [(grant,)])


def _nothing(match: re.Match[str], session: Session) -> ResultSet:
    return ResultSet()


def _empty(match: re.Match[str], session: Session) -> ResultSet:
    return ResultSet(("Name",))


def _statement(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE | re.DOTALL)


_STATEMENTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Session], ResultSet]], ...] = (
    (_statement(r"SET (?P<list>.+)"), _set),
    (_statement(r"SELECT (?P<list>.+?) FROM .+"), _select_from),
    (_statement(r"SELECT (?P<list>.+?)(?: LIMIT \d+)?"), _select),
    (
        _statement(r"SHOW (?:(?:GLOBAL|SESSION|LOCAL) )?VARIABLES(?: (?P<filter>(?:LIKE|WHERE).+))?"),
        _variables,
    ),
    (_statement(r"SHOW (?:BINARY|MASTER) LOGS"), _binary_logs),
    (_statement(r"SHOW (?:MASTER|BINARY LOG|BINLOG) STATUS"), _position),
    (_statement(r"SHOW (?:SLAVE HOSTS|REPLICA HOSTS|REPLICAS)"), _replicas),
    (_statement(r"SHOW GRANTS.*"), _grants),
    (
        _statement(
            r"SHOW (?:ALL SLAVES|CHARACTER SET|COLLATION|DATABASES|ENGINES|FULL|GLOBAL STATUS|PLUGINS"
            r"|PROCESSLIST|REPLICA STATUS|SCHEMAS|SESSION STATUS|SLAVE STATUS|STATUS|TABLES|WARNINGS).*"
        ),
        _empty,
    ),
    (_statement(r"(?:BEGIN|COMMIT|DO|FLUSH|KILL|ROLLBACK|START|UNLOCK|USE)\b.*"), _nothing),
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r"'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"", re.DOTALL)
_ALIAS = re.compile(
    r"(?P<expression>.+?)\s+(?:AS\s+)?[`'\"]?(?P<alias>\w+)[`'\"]?", re.IGNORECASE | re.DOTALL
)
_USER_VARIABLE_ASSIGNMENT = re.compile(r"@`?(?P<name>[\w.$]+)`?\s*:?=\s*(?P<value>.+)", re.DOTALL)


def _system_variable(match: re.Match[str], session: Session) -> Value:
    name = match[1].lower()
    value = _variable(name, session)
    if value is None:
        raise ServerError(1193, "HY000", f"Unknown system variable '{match[1]}'")
    return value if name in _ENUMERATIONS else _SWITCHES.get(value, value)


def _user_variable(match: re.Match[str], session: Session) -> Value:
    return session.variables.get(match[1].lower())


def _string(match: re.Match[str], session: Session) -> Value:
    return _unquote(match[0])


def _number(match: re.Match[str], session: Session) -> Value:
    return match[0]


def _null(match: re.Match[str], session: Session) -> Value:
    return None


def _function(match: re.Match[str], session: Session) -> Value:
    function = _FUNCTIONS.get(match[1].upper())
    if function is None:
        raise ServerError(1305, "42000", f"FUNCTION {match[1]} does not exist")
    return function([_value(argument, session) for argument in _split(match[2])], session)


_EXPRESSIONS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Session], Value]], ...] = (
    (re.compile(r"@@(?:(?:GLOBAL|SESSION|LOCAL)\s*\.\s*)?`?(\w+)`?", re.IGNORECASE), _system_variable),
    (re.compile(r"@`?([\w.$]+)`?"), _user_variable),
    (_STRING, _string),
    (re.compile(r"-?\d+(?:\.\d+)?"), _number),
    (re.compile(r"NULL", re.IGNORECASE), _null),
    (re.compile(r"(\w+)\s*\((.*)\)", re.DOTALL), _function),
)


def _gtid_position(arguments: list[Value], session: Session) -> Value:
    """MariaDB's BINLOG_GTID_POS(file, position)."""
    if len(arguments) != 2 or not (arguments[1] or "").isdecimal():
        return None
    binlogs = session.archive.starting_at(arguments[0] or "?")
    return session.archive.gtid_set_at(binlogs[0], int(arguments[1] or 0)) if binlogs else None


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


def _is_expression(text: str) -> bool:
    return any(pattern.fullmatch(text) for pattern, _ in _EXPRESSIONS)


def _value(expression: str, session: Session) -> Value:
    text = expression.strip()
    for pattern, evaluate in _EXPRESSIONS:
        if match := pattern.fullmatch(text):
            return evaluate(match, session)
    raise _not_understood(text)


def _not_understood(text: str) -> ServerError:
    return ServerError(1064, "42000", f"This source of archived binlogs does not understand: {text[:80]}")


def _split(text: str) -> Iterator[str]:
    """The parts between commas that stand in no string and no parentheses."""
    depth, start, offset = 0, 0, 0
    while offset < len(text):
        if string := _STRING.match(text, offset):
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


def _unquote(literal: str) -> str:
    quote = literal[0]
    return re.sub(r"\\(.)", r"\1", literal[1:-1].replace(quote * 2, quote), flags=re.DOTALL)


def _like(pattern: str) -> re.Pattern[str]:
    wildcards = {"%": ".*", "_": "."}
    return re.compile("".join(wildcards.get(c, re.escape(c)) for c in pattern), re.IGNORECASE)
