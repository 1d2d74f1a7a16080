"""Reads a column's declaration: its name, type and attributes.

Attributes may stand in any order, so each is read by its first word. Expressions, comments and references to
other tables are stepped over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from engine.schema.collations import BINARY
from engine.schema.statements import ColumnClause, Default, TypeClause
from engine.schema.token_reader import TokenReader, UnexpectedTokenError
from engine.schema.tokens import BITS, NUMBER, QUOTED, STRING, WORD

_SAME_NAME = (
    "tinyint smallint mediumint int bigint float double decimal bit real boolean serial"
    " date time datetime timestamp year char varchar binary varbinary enum set"
    " tinytext text mediumtext longtext tinyblob blob mediumblob longblob json vector uuid inet4 inet6"
    " geometry point linestring polygon multipoint multilinestring multipolygon geometrycollection"
)
_TYPES: Mapping[str, str] = {name.upper(): name for name in _SAME_NAME.split()} | {
    "INT1": "tinyint",
    "INT2": "smallint",
    "INT3": "mediumint",
    "MIDDLEINT": "mediumint",
    "INT4": "int",
    "INTEGER": "int",
    "INT8": "bigint",
    "BOOL": "boolean",
    "DEC": "decimal",
    "NUMERIC": "decimal",
    "FIXED": "decimal",
    "NUMBER": "decimal",
    "FLOAT4": "float",
    "FLOAT8": "double",
    "CHARACTER": "char",
    "VARCHARACTER": "varchar",
    "VARCHAR2": "varchar",
    "CLOB": "longtext",
    "RAW": "varbinary",
    "GEOMCOLLECTION": "geometrycollection",
}
"""A type's word → the type; types of several words have their own readers, `_TYPE_READERS`."""
_NATIONAL_CHARSET = "utf8mb3"
_VARYING = frozenset({"VARYING", "VARCHAR", "VARCHARACTER"})
_DIALECT_TYPES: Mapping[str, Mapping[str, str]] = {
    "MARIADB_SCHEMA": {},
    "ORACLE_SCHEMA": {"date": "datetime"},
    "MAXDB_SCHEMA": {"timestamp": "datetime"},
}
"""MariaDB: a type's name may be qualified with the dialect that it comes from → types with other meanings."""
_CURRENT_TIME = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_TIME_LITERALS = frozenset({"DATE", "TIME", "TIMESTAMP"})
_CONSTANTS = {"NULL": Default("null"), "TRUE": Default("number", "1"), "FALSE": Default("number", "0")}
_REFERENCE_ACTIONS = frozenset({"RESTRICT", "CASCADE", "SET", "NO", "NULL", "ACTION", "DEFAULT"})

Item = TypeVar("Item")
Fields = dict[str, Any]
AttributeReader = Callable[[TokenReader, Fields, Fields], None]
"""Reads what follows an attribute's first word into fields of `TypeClause` and of `ColumnClause`."""


def read_column(reader: TokenReader) -> ColumnClause:
    """A column's name, type and attributes. Raises `UnexpectedTokenError`."""
    name = reader.column()
    type_fields = _read_type(reader)
    column: Fields = {}
    while True:
        read = _ATTRIBUTES.get(reader.upper)
        if read is not None:
            reader.step()
            read(reader, type_fields, column)
        elif not _skip_engine_attribute(reader):
            break
    if type_fields["name"] == "serial":
        column |= {"nullable": False, "auto_increment": True, "unique": True}
    return ColumnClause(name, TypeClause(**type_fields), **column)


def read_default(reader: TokenReader) -> Default:
    """The value after DEFAULT. Raises `UnexpectedTokenError`."""
    if reader.upper == "(":
        return _parenthesized_default(reader)
    word = reader.upper
    string_follows = reader.following().kind in (STRING, BITS)
    if word in _CONSTANTS:
        reader.step()
        return _CONSTANTS[word]
    if string_follows and (word in _TIME_LITERALS or word.startswith("_")):
        reader.step()
    elif reader.token.kind in (WORD, QUOTED):
        _skip_expression(reader)
        return Default("computed")
    return _literal(reader)


def _parenthesized_default(reader: TokenReader) -> Default:
    """MySQL computes a default in parentheses for each row; for MariaDB a literal in them is a literal."""
    start = reader.position
    if reader.session.mariadb:
        depth = 0
        while reader.take("("):
            depth += 1
        try:
            inner = read_default(reader)
            reader.expect(*(")" * depth))
            return inner
        except UnexpectedTokenError:
            reader.position = start
    reader.skip_parentheses()
    return Default("computed")


def _literal(reader: TokenReader) -> Default:
    if reader.token.kind == STRING:
        return Default("string", reader.string())
    if reader.token.kind == BITS:
        return Default("bits", reader.step().text)
    sign = "-" if reader.take("-") else ""
    if not sign:
        reader.take("+")
    if reader.token.kind != NUMBER:
        raise reader.unexpected("a value")
    return Default("number", sign + reader.step().text)


def _skip_expression(reader: TokenReader) -> None:
    """Step over a primary expression that starts with a word: a function call, a CASE, NEXT VALUE FOR."""
    if reader.take("CASE"):
        while not reader.take("END"):
            reader.step()
        return
    if reader.take("NEXT", "VALUE", "FOR"):
        reader.table()
        return
    reader.column()
    if reader.upper == "(":
        reader.skip_parentheses()


# Types


def _read_type(reader: TokenReader) -> Fields:
    fields: Fields = {}
    dialect = _DIALECT_TYPES.get(reader.upper, {})
    if reader.upper in _DIALECT_TYPES and reader.following().upper == ".":
        reader.step()
        reader.expect(".")
    elif reader.session.oracle:
        dialect = _DIALECT_TYPES["ORACLE_SCHEMA"]
    word = reader.upper
    special = _TYPE_READERS.get(word)
    if special is not None:
        reader.step()
        special(reader, fields)
    elif word in _TYPES:
        reader.step()
        name = _TYPES[word]
        fields["name"] = dialect.get(name, name)
        fields["number"] = word == "NUMBER"
    else:
        raise reader.unexpected("a type")
    if reader.upper == "(":
        _read_parentheses(reader, fields)
    return fields


def _read_parentheses(reader: TokenReader, fields: Fields) -> None:
    reader.expect("(")
    if fields["name"] in ("enum", "set"):
        members = _comma_separated(reader, _member)
        fields["members"] = tuple(text for text, _ in members)
        fields["members_as_bytes"] = any(as_bytes for _, as_bytes in members)
    else:
        fields["lengths"] = tuple(_comma_separated(reader, TokenReader.number))
    reader.expect(")")


def _comma_separated(reader: TokenReader, read: Callable[[TokenReader], Item]) -> list[Item]:
    items = [read(reader)]
    while reader.take(","):
        items.append(read(reader))
    return items


def _member(reader: TokenReader) -> tuple[str, bool]:
    """The text, and whether it is written as bytes."""
    if reader.token.kind == WORD and reader.token.text.startswith("_"):
        reader.step()
    if reader.token.kind == BITS:
        return _bits_text(reader.step().text), True
    return reader.string(), False


def _bits_text(literal: str) -> str:
    """The text of a hexadecimal literal of an ENUM's member. Raises `UnexpectedTokenError`."""
    digits = literal[2:].rstrip("'")
    try:
        if "b" in literal[:2].lower():
            raise ValueError
        return bytes.fromhex(digits).decode("latin-1")
    except ValueError:
        raise UnexpectedTokenError(f"the member {literal} is not hexadecimal") from None


def _character(reader: TokenReader, fields: Fields) -> None:
    fields["name"] = "varchar" if reader.take_one_of(_VARYING) else "char"


def _national(reader: TokenReader, fields: Fields) -> None:
    fields["charset"] = _NATIONAL_CHARSET
    if reader.take_one_of(frozenset({"CHAR", "CHARACTER"})):
        _character(reader, fields)
    else:
        reader.take_one_of(_VARYING)
        fields["name"] = "varchar"


def _nchar(reader: TokenReader, fields: Fields) -> None:
    fields["charset"] = _NATIONAL_CHARSET
    _character(reader, fields)


def _nvarchar(reader: TokenReader, fields: Fields) -> None:
    fields["charset"] = _NATIONAL_CHARSET
    fields["name"] = "varchar"


def _double(reader: TokenReader, fields: Fields) -> None:
    reader.take("PRECISION")
    fields["name"] = "double"


def _long(reader: TokenReader, fields: Fields) -> None:
    fields["name"] = "mediumtext"
    if reader.take("VARBINARY"):
        fields["name"] = "mediumblob"
    elif not (reader.take("CHAR", "VARYING") or reader.take("CHARACTER", "VARYING")):
        reader.take_one_of(_VARYING)


_TYPE_READERS: Mapping[str, Callable[[TokenReader, Fields], None]] = {
    "CHAR": _character,
    "CHARACTER": _character,
    "NATIONAL": _national,
    "NCHAR": _nchar,
    "NVARCHAR": _nvarchar,
    "DOUBLE": _double,
    "LONG": _long,
}


# Attributes


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
    "ASCII": _type_field("charset", "latin1"),
    "UNICODE": _type_field("charset", "ucs2"),
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
    "COMMENT": _skip_value,
    "COLUMN_FORMAT": _skip_value,
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
