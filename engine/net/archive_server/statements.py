"""Executes the SQL statements that replicas, binlog tools and drivers send to the archive server.

A statement is matched against one table of patterns; the expressions of SELECT and SET are in
`engine.net.archive_server.session`. Every other statement is refused with a syntax error that quotes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from engine.net.archive_server.session import (
    STRING,
    Session,
    Value,
    is_expression,
    split_list,
    system_variable,
    unquote,
    unsupported_syntax,
    value_of,
    variable_names,
)
from engine.net.protocol.resultset import ResultSet

MAX_STATEMENT = 8192
"""The longest statement in characters that is parsed; drivers send shorter ones."""
_MAX_WILDCARDS = 4
"""The time of a match grows exponentially with their number in a pattern."""


def execute_statement(statement: str, session: Session) -> ResultSet:
    """The result of a statement, without columns if it returns no rows; raises `ServerError` if refused."""
    text = _STRING_OR_GAP.sub(lambda match: match["string"] or " ", statement[:MAX_STATEMENT])
    text = text.strip().rstrip(";").strip()
    if len(statement) > MAX_STATEMENT:
        raise unsupported_syntax(text)
    for pattern, give in _STATEMENTS:
        if match := pattern.fullmatch(text):
            return give(match, session)
    raise unsupported_syntax(text)


def _set(match: re.Match[str], session: Session) -> ResultSet:
    for assignment in split_list(match["list"]):
        if target := _USER_VARIABLE_ASSIGNMENT.fullmatch(assignment):
            session.variables[target["name"].lower()] = value_of(target["value"], session)
    return ResultSet()


def _select(match: re.Match[str], session: Session) -> ResultSet:
    columns: list[str] = []
    row: list[Value] = []
    for item in split_list(match["list"]):
        aliased = None if is_expression(item) else _ALIAS.fullmatch(item)
        columns.append(aliased["alias"] if aliased else item)
        row.append(value_of(aliased["expression"] if aliased else item, session))
    return ResultSet(columns, [tuple(row)])


def _select_from(match: re.Match[str], session: Session) -> ResultSet:
    names = [item.rpartition(".")[2].strip("` ") for item in split_list(match["list"])]
    return ResultSet(names)


def _variables(match: re.Match[str], session: Session) -> ResultSet:
    literals = [unquote(literal) for literal in STRING.findall(match["filter"] or "")]
    patterns = [_like(literal) for literal in literals] or [re.compile(".*")]
    wanted = sorted(
        name for name in variable_names(session) if any(pattern.fullmatch(name) for pattern in patterns)
    )
    return ResultSet(("Variable_name", "Value"), [(name, system_variable(name, session)) for name in wanted])


def _binary_logs(match: re.Match[str], session: Session) -> ResultSet:
    rows = [(binlog.name, str(binlog.size)) for binlog in session.archive.binlogs]
    return ResultSet(("Log_name", "File_size"), rows)


def _position(match: re.Match[str], session: Session) -> ResultSet:
    last = session.archive.last
    columns = ["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB"]
    end = session.archive.end
    row = [end.file, str(end.position), "", ""]
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
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


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
_STRING_OR_GAP = re.compile(rf"(?P<string>{STRING.pattern})|(?:\s|/\*.*?\*/)+", re.DOTALL)
"""Strings stay; a gap becomes one space: in long ones a match takes the cube of their length."""
_ALIAS = re.compile(r"(?P<expression>.+?) (?:AS )?[`'\"]?(?P<alias>\w+)[`'\"]?", re.IGNORECASE | re.DOTALL)
_USER_VARIABLE_ASSIGNMENT = re.compile(r"@`?(?P<name>[\w.$]+)`?\s*:?=\s*(?P<value>.+)", re.DOTALL)


def _like(pattern: str) -> re.Pattern[str]:
    if pattern.count("%") > _MAX_WILDCARDS:
        raise unsupported_syntax(pattern)
    wildcards = {"%": ".*", "_": "."}
    return re.compile("".join(wildcards.get(c, re.escape(c)) for c in pattern), re.IGNORECASE)
