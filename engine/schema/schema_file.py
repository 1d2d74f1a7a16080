"""Definitions from a file of DDL statements, such as `mysqldump --no-data --databases shop` writes.

The statements that define databases and tables are executed on a model of their own; all others (settings,
views, triggers) are passed over. The file is from the server whose binlog is read: its version decides what
executable comments mean, and is taken from the dump's header if there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.binlog.events.statements import Query
from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import TableDefinition
from engine.errors import EngineError
from engine.schema.changes import TableName
from engine.schema.model import SchemaModel
from engine.schema.session import session_of
from engine.schema.tokens import Token, TokenError, tokenize

_VERSION = re.compile(r"^-- Server version\s+(\S+)", re.MULTILINE)
_NEWEST = {"mysql": "9.99.0", "mariadb": "99.0.0-MariaDB"}
"""The versions to assume without a header: every executable comment counts."""
_OTHER_DELIMITER = re.compile(
    r"^DELIMITER[ \t]+(?!;[ \t\r]*$).*?^DELIMITER[ \t]+;", re.MULTILINE | re.DOTALL | re.IGNORECASE
)
"""Routines, triggers and events, whose bodies contain statements that are not the file's."""
_DEFINING = {("CREATE", "TABLE"), ("CREATE", "DATABASE"), ("CREATE", "SCHEMA"), ("CREATE", "OR")}
_UTF8MB4 = {"mysql": 255, "mariadb": 45}
"""Collation ids; dumps name the character set of every table, so that this rarely counts."""


class SchemaFileError(EngineError):
    """A schema file cannot be read."""


def read_schema_file(path: Path, flavor: str) -> Mapping[TableName, TableDefinition]:
    """The definitions by name. `flavor`: `mysql` or `mariadb`.

    Raises `SchemaFileError` for a file that cannot be read, or that defines no table of a named database.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaFileError(f"the schema file {path} cannot be read: {error}") from error
    header = _VERSION.search(text)
    version = header[1] if header else _NEWEST[flavor]
    model = SchemaModel(flavor)
    defined = 0
    try:
        for number, (statement, database) in enumerate(_statements(text, version, flavor)):
            collation = {"collation_server": _UTF8MB4[flavor]}
            query = Query(database, statement, None, 0, 0, 0, collation)
            model.execute(query, version, BinlogPosition(path.name, number))
            defined += 1
    except TokenError as error:
        raise SchemaFileError(f"the schema file {path} is not a file of SQL statements: {error}") from error
    definitions = {TableName(each.database, each.table): each for each in model.tables() if each.database}
    if not definitions:
        reason = (
            "it defines no table" if not defined else "its tables have no database, or are not understood"
        )
        raise SchemaFileError(
            f"the schema file {path} is of no use, because {reason}: make it with "
            "mysqldump --no-data --databases NAME"
        )
    return definitions


def _statements(text: str, version: str, flavor: str) -> Iterator[tuple[str, str]]:
    """The statements that define something, each with its default database. Raises `TokenError`."""
    text = _OTHER_DELIMITER.sub("", text)
    session = session_of(Query("", "", None, 0, 0, 0, {}), version, flavor)
    database = ""
    tokens: list[Token] = []
    start = 0
    for token in tokenize(text, session):
        if token.upper != ";":
            tokens.append(token)
            continue
        words = [each.upper for each in tokens[:2]]
        if words[:1] == ["USE"] and len(tokens) == 2:
            database = tokens[1].text
        elif tuple(words) in _DEFINING:
            yield text[start : token.end - 1], database
        tokens.clear()
        start = token.end
    if tuple(each.upper for each in tokens[:2]) in _DEFINING:
        yield text[start:], database
