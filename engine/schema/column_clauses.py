"""Reads a column's declaration: its name, type and attributes.

Attributes may stand in any order, so each is read by its first word. Expressions, comments and references to
other tables are stepped over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.binlog.collations import BINARY
from engine.schema.declarations import ColumnClause, TypeClause
from engine.schema.default_values import read_default
from engine.schema.token_reader import TokenReader
from engine.schema.tokens import QUOTED, WORD
from engine.schema.type_clauses import Fields, read_type

_CURRENT_TIME = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_REFERENCE_ACTIONS = frozenset({"RESTRICT", "CASCADE", "SET", "NO", "NULL", "ACTION", "DEFAULT"})

AttributeReader = Callable[[TokenReader, Fields, Fields], None]
"""Reads what follows an attribute's first word into fields of `TypeClause` and of `ColumnClause`."""


def read_column(reader: TokenReader) -> ColumnClause:
    """A column's name, type and attributes. Raises `UnexpectedTokenError`."""
    name = reader.column()
    type_fields = read_type(reader)
    column: Fields = {}
    if type_fields["name"] == "serial":
        column = {"nullable": False, "auto_increment": True, "unique": True}
    while True:
        read = _ATTRIBUTES.get(reader.upper)
        if read is not None:
            reader.step()
            read(reader, type_fields, column)
        elif not _skip_engine_attribute(reader):
            break
    return ColumnClause(name, TypeClause(**type_fields), **column)


def _type_field(name: str, value: Any) -> AttributeReader:
    def read(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
        type_fields[name] = value

    return read


def _column_field(name: str, value: Any) -> AttributeReader:
    def read(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
        column[name] = value

    return read


def _skip(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    """An attribute of one word."""


def _skip_value(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    reader.take("=")
    reader.skip_value()


def _short_charset(charset: str) -> AttributeReader:
    def read(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
        type_fields |= {"charset": charset, "short_charset": True}

    return read


def _charset(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    type_fields["charset"] = reader.charset()


def _character_set(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    reader.expect("SET")
    _charset(reader, type_fields, column)


def _collate(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    reader.take("=")
    type_fields["collation"] = reader.charset()


def _not(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    if not reader.take("SECONDARY"):
        reader.expect("NULL")
        column["nullable"] = False


def _default(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    column["default"] = read_default(reader)


def _on(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    reader.expect("UPDATE")
    if not reader.take_one_of(_CURRENT_TIME):
        raise reader.unexpected("the current time")
    if reader.upper == "(":
        reader.skip_parentheses()
    column["on_update"] = True


def _auto_increment(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    """Implies NOT NULL, but a NULL after it counts."""
    column |= {"nullable": False, "auto_increment": True}


def _serial(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    reader.expect("DEFAULT", "VALUE")
    column |= {"nullable": False, "auto_increment": True, "unique": True}


def _primary(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    reader.expect("KEY")
    column["primary"] = True


def _unique(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    reader.take("KEY")
    column["unique"] = True


def _generated(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    reader.expect("ALWAYS", "AS")
    _as(reader, type_fields, column)


def _as(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    if reader.take("ROW"):
        version = "start" if reader.take("START") else "end"
        if version == "end":
            reader.expect("END")
        column |= {"row_version": version, "generated": "stored"}
        return
    reader.skip_parentheses()
    column.setdefault("generated", "virtual")


def _check(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    reader.skip_parentheses()
    if not reader.take("NOT", "ENFORCED"):
        reader.take("ENFORCED")


def _constraint(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    reader.optional_name("CHECK", "PRIMARY", "UNIQUE", "REFERENCES")


def _references(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    skip_reference(reader)


def skip_reference(reader: TokenReader) -> None:
    """Step over what follows REFERENCES. Raises `UnexpectedTokenError`."""
    reader.table()
    if reader.upper == "(":
        reader.skip_parentheses()
    while True:
        if reader.take("MATCH"):
            reader.step()
        elif reader.take("ON", "DELETE") or (
            reader.ahead("ON", "UPDATE") and reader.following(2).upper in _REFERENCE_ACTIONS
        ):
            reader.take("ON", "UPDATE")
            if not (
                reader.take("SET", "NULL") or reader.take("SET", "DEFAULT") or reader.take("NO", "ACTION")
            ):
                reader.step()
        else:
            return


def _column_format(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    """How the storage engine keeps the column; Percona Server may compress it with a dictionary."""
    _skip_value(reader, type_fields, column)
    if reader.take("WITH", "COMPRESSION_DICTIONARY"):
        reader.name()


def _masking(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    """What MySQL 9.7 shows to users of a column; the binlog has its values."""
    reader.expect("POLICY")
    reader.name()


def _clustering(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    """A key of Percona Server's TokuDB; beside UNIQUE, which is read by itself, a unique one."""
    reader.take("KEY")


def _with(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    reader.expect("SYSTEM", "VERSIONING")
    column["versioned"] = True


def _without(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    reader.expect("SYSTEM", "VERSIONING")


def _compressed(reader: TokenReader, type_fields: Fields, column: Fields) -> None:
    if reader.take("="):
        reader.step()
    type_fields["compressed"] = True


_ATTRIBUTES: Mapping[str, AttributeReader] = {
    "UNSIGNED": _type_field("unsigned", True),
    "SIGNED": _skip,
    "ZEROFILL": _type_field("zerofill", True),
    "BINARY": _type_field("binary", True),
    "ASCII": _short_charset("latin1"),
    "UNICODE": _short_charset("ucs2"),
    "BYTE": _type_field("charset", BINARY),
    "CHARSET": _charset,
    "CHARACTER": _character_set,
    "CHAR": _character_set,
    "COLLATE": _collate,
    "NULL": _column_field("nullable", True),
    "NOT": _not,
    "DEFAULT": _default,
    "ON": _on,
    "AUTO_INCREMENT": _auto_increment,
    "SERIAL": _serial,
    "PRIMARY": _primary,
    "KEY": _column_field("primary", True),
    "UNIQUE": _unique,
    "CLUSTERING": _clustering,
    "MASKING": _masking,
    "COMMENT": _skip_value,
    "COLUMN_FORMAT": _column_format,
    "STORAGE": _skip_value,
    "SRID": _skip_value,
    "REF_SYSTEM_ID": _skip_value,
    "ENGINE_ATTRIBUTE": _skip_value,
    "SECONDARY_ENGINE_ATTRIBUTE": _skip_value,
    "VISIBLE": _column_field("visible", True),
    "INVISIBLE": _column_field("visible", False),
    "GENERATED": _generated,
    "AS": _as,
    "VIRTUAL": _column_field("generated", "virtual"),
    "STORED": _column_field("generated", "stored"),
    "PERSISTENT": _column_field("generated", "stored"),
    "CHECK": _check,
    "CONSTRAINT": _constraint,
    "REFERENCES": _references,
    "WITH": _with,
    "WITHOUT": _without,
    "COMPRESSED": _compressed,
}
"""First word of an attribute → its reader."""


def _skip_engine_attribute(reader: TokenReader) -> bool:
    """Step over an attribute of MariaDB's storage engines, `name = value`; returns whether there is one."""
    named = reader.token.kind in (WORD, QUOTED) and reader.following().upper == "="
    if not named or not reader.session.mariadb:
        return False
    reader.name()
    reader.expect("=")
    reader.skip_value()
    return True
