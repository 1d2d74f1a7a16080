"""A column's full type as information_schema shows it, from the type clause and the session.

Servers differ in display widths, in the names of some types, and in what becomes of lengths that do not fit;
each rule here is one of the servers' (`Create_field::init` and `Field::sql_type` in their sources).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from engine.binlog.collations import BINARY, WIDTH, charset_of_collation
from engine.binlog.table_definition import COMPRESSED, UNKNOWN_CHARSET
from engine.errors import EngineError
from engine.schema.collations import DEFAULT, binary_collation, default_collation
from engine.schema.declarations import TypeClause
from engine.schema.member_texts import WIDE, MemberError, stored_members
from engine.schema.session import MARIADB_CHARSETS_IN_CONTEXT_SINCE, StatementSession
from engine.schema.type_numbers import numbers

TEXT_TYPES = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})
_BINARY_FORMS = {
    "char": "binary",
    "varchar": "varbinary",
    "tinytext": "tinyblob",
    "text": "blob",
    "mediumtext": "mediumblob",
    "longtext": "longblob",
}
"""Text type → its type with the character set `binary`."""
_TEXT_FORMS = {binary: text for text, binary in _BINARY_FORMS.items()}
"""MariaDB: binary type → what a COLLATE clause makes of it."""
_INTEGER_WIDTHS = {
    "tinyint": (4, 3),
    "smallint": (6, 5),
    "mediumint": (9, 8),
    "int": (11, 10),
    "bigint": (20, 20),
}
"""Integer type → default display width, signed and unsigned."""
_COLLATE_BEFORE_BINARY_SINCE = {"mysql": (8, 0, 0), "mariadb": MARIADB_CHARSETS_IN_CONTEXT_SINCE}
"""COLLATE is stronger than BINARY, in MySQL for columns that have a CHARACTER SET only."""
_WIDTHS_HIDDEN_SINCE = (8, 0, 19)
_GEOMCOLLECTION_SINCE = (8, 0, 11)
_BINARY_IS_HIDDEN_SINCE = (8, 0, 0)
"""MySQL shows no character set for ENUM and SET columns with the character set `binary`."""
_EMPTY_TEXT_IS_TINY_SINCE = (8, 0, 0)
"""MySQL makes TINYTEXT of TEXT(0)."""
_BLOB_SIZES = ((0xFF, "tiny"), (0xFFFF, ""), (0xFFFFFF, "medium"), (0xFFFFFFFF, "long"))
"""Bytes that fit → the prefix of the type's name."""
_LONGEST_VARCHAR, _LONGEST_MARIADB_VARCHAR = 0xFFFF, 0xFFFF - 3
"""Bytes."""
_SHORT_TEXT = 0xFFFF // 4
"""Characters that fit into a VARCHAR in every character set."""
_FLOAT_DIGITS = 24
"""Binary digits of precision up to which FLOAT(p) is FLOAT."""
_DEFAULT_VECTOR_DIMENSIONS = 2048
_ESCAPES = str.maketrans({"\\": "\\\\", "\0": "\\0", "\n": "\\n", "\r": "\\r", "'": "''"})


class UncertainError(EngineError):
    """What a statement leads to does not follow from what is known."""


class UnknownDefaultError(UncertainError):
    """What is not known is the default character set, which is that of the database."""


def resolve_type(
    clause: TypeClause, session: StatementSession, table_collation: str | None
) -> tuple[str, str | None]:
    """The full type, and the canonical collation of text, `UNKNOWN_CHARSET` if that is not known.

    `table_collation`: the table's default, None if not known. Raises `UncertainError`.
    """
    name, collation = clause.name, None
    if name == "json" and session.mariadb:
        clause = replace(clause, name="longtext", collation=clause.collation or "utf8mb4_bin")
        name = "longtext"
    if session.mariadb and clause.collation not in (None, BINARY, DEFAULT) and name in _TEXT_FORMS:
        name = _TEXT_FORMS[name]
    if name in TEXT_TYPES and table_collation is None and _needs_no_charset(clause):
        form = _FORMS.get(name) if not name.endswith("text") else None
        return name if form is None else form(clause, session, name, 1), UNKNOWN_CHARSET
    if name in TEXT_TYPES:
        collation = _collation(clause, session, table_collation)
        if collation == BINARY and name in _BINARY_FORMS:
            name, collation = _BINARY_FORMS[name], None
    if clause.members and collation is not None:
        clause = replace(clause, members=_stored_members(clause, _charset(collation), session))
    form = _FORMS.get(name)
    text = name if form is None else form(clause, session, name, _width(collation))
    if clause.compressed:
        text += COMPRESSED
    if collation == BINARY and not shows_binary(name, session):
        collation = None
    return text, collation


def _needs_no_charset(clause: TypeClause) -> bool:
    """Whether the full type is the same with every default character set."""
    if clause.charset or clause.collation or clause.compressed:
        return False
    if clause.name.endswith("text"):
        return not clause.lengths
    if clause.members:
        return not clause.members_as_bytes and all(
            member.isascii() and not member.endswith(" ") for member in clause.members
        )
    return all(length <= _SHORT_TEXT for length in clause.lengths)


def shows_binary(column_type: str, session: StatementSession) -> bool:
    """Whether the character set `binary` of a column of this type is shown."""
    hidden = not session.mariadb and session.version >= _BINARY_IS_HIDDEN_SINCE
    return not hidden and column_type.startswith(("enum", "set"))


def resolve_collation(
    charset: str | None,
    collation: str | None,
    session: StatementSession,
    inherited: str | None,
    container: str | None = None,
) -> str | None:
    """The canonical collation that a character set, a collation, or neither of them stand for.

    `inherited`: the collation without another; `container`: of the database, or of the server for a database,
    to which the word DEFAULT refers. Raises `UncertainError` for unknown names.
    """
    if charset == DEFAULT:
        charset, inherited = None, container
        if session.default_is_of_context:
            inherited = default_collation(_charset(container), session.flavor, session.version)
    if collation == DEFAULT:
        if not session.default_is_of_context:
            return container
        return session.default_collation(charset or _charset(inherited))
    if collation is not None:
        if charset_of_collation(collation) is not None:
            return collation
        # MariaDB: a collation without a character set, which is that of the context.
        return f"{charset or _charset(inherited)}_{collation}"
    if charset is None:
        return inherited
    named = session.default_collation(charset)
    if named is None:
        raise UncertainError(f"the character set {charset} is not known")
    return named


def _charset(collation: str | None) -> str:
    charset = None if collation is None else charset_of_collation(collation)
    if charset is None:
        raise UnknownDefaultError("the default character set is not known")
    return charset


def _collation(clause: TypeClause, session: StatementSession, table_collation: str | None) -> str:
    collation = resolve_collation(clause.charset, clause.collation, session, table_collation)
    if collation is None:
        raise UnknownDefaultError("the table's default character set is not known")
    if session.mariadb and collation.endswith("_bin"):
        return collation
    if clause.binary and not (clause.collation is not None and _collate_is_stronger(clause, session)):
        return binary_collation(charset_of_collation(collation) or BINARY)
    return collation


def _collate_is_stronger(clause: TypeClause, session: StatementSession) -> bool:
    """Whether the collation of a COLLATE clause counts, not the one of BINARY."""
    if session.version >= _COLLATE_BEFORE_BINARY_SINCE[session.flavor]:
        return session.mariadb or clause.charset is not None
    # `ASCII BINARY` is one word of the older grammar, for a character set with its binary collation.
    return clause.short_charset


def _stored_members(clause: TypeClause, charset: str, session: StatementSession) -> tuple[str, ...]:
    """The members as servers store them: without spaces at the end, unless they are bytes."""
    if clause.members_as_bytes and (charset in WIDE or not all(map(str.isascii, clause.members))):
        raise UncertainError(f"what text members that are written as bytes have in {charset}")
    members = (member if charset == BINARY else member.rstrip(" ") for member in clause.members)
    try:
        return stored_members(members, charset, session.client_charset)
    except MemberError as error:
        raise UncertainError(str(error)) from None


def _width(collation: str | None) -> int:
    charset = None if collation is None else charset_of_collation(collation)
    return WIDTH[charset] if charset is not None else 1


def _hides_widths(session: StatementSession) -> bool:
    return not session.mariadb and session.version >= _WIDTHS_HIDDEN_SINCE


def _signed(clause: TypeClause, text: str) -> str:
    """With the attributes of numbers; ZEROFILL implies UNSIGNED."""
    if clause.unsigned or clause.zerofill:
        text += " unsigned"
    return text + " zerofill" if clause.zerofill else text


def _integer(clause: TypeClause, session: StatementSession, name: str, width: int) -> str:
    unsigned = clause.unsigned or clause.zerofill
    shown = (clause.lengths[0] if clause.lengths else 0) or _INTEGER_WIDTHS[name][unsigned]
    boolean = name == "tinyint" and shown == 1 and not unsigned
    if _hides_widths(session) and not boolean and not clause.zerofill:
        return _signed(clause, name)
    return _signed(clause, f"{name}({shown})")


def _boolean(clause: TypeClause, session: StatementSession, name: str, width: int) -> str:
    return _integer(TypeClause("tinyint", (1,)), session, "tinyint", width)


def _serial(clause: TypeClause, session: StatementSession, name: str, width: int) -> str:
    return _integer(TypeClause("bigint", unsigned=True), session, "bigint", width)


def _decimal(clause: TypeClause, session: StatementSession, name: str, width: int) -> str:
    precision, scale = (*clause.lengths, 0, 0)[:2]
    if session.oracle and clause.number and not clause.lengths:
        return "double"
    return _signed(clause, f"decimal({precision or max(10, scale)},{scale})")


def _floating(clause: TypeClause, session: StatementSession, name: str, width: int) -> str:
    if name == "real":
        name = "float" if session.real_as_float else "double"
    if len(clause.lengths) == 2:
        return _signed(clause, f"{name}({clause.lengths[0]},{clause.lengths[1]})")
    if clause.lengths and clause.lengths[0] > _FLOAT_DIGITS:
        name = "double"
    return _signed(clause, name)


def _bit(clause: TypeClause, session: StatementSession, name: str, width: int) -> str:
    return f"bit({(clause.lengths[0] if clause.lengths else 0) or 1})"


def _year(clause: TypeClause, session: StatementSession, name: str, width: int) -> str:
    if _hides_widths(session):
        return name
    return "year(2)" if clause.lengths == (2,) and session.mariadb else "year(4)"


def _temporal(clause: TypeClause, session: StatementSession, name: str, width: int) -> str:
    digits = clause.lengths[0] if clause.lengths else 0
    return f"{name}({digits})" if digits else name


def _fixed_length(clause: TypeClause, session: StatementSession, name: str, width: int) -> str:
    return f"{name}({clause.lengths[0] if clause.lengths else 1})"


def _variable_length(clause: TypeClause, session: StatementSession, name: str, width: int) -> str:
    if not clause.lengths:
        raise UncertainError(f"{name} without a length")
    length = clause.lengths[0]
    too_long = _too_long(length, width, session, compressed=clause.compressed)
    return f"{name}({length})" if too_long is None else too_long + ("text" if name == "varchar" else "blob")


def _too_long(length: int, width: int, session: StatementSession, *, compressed: bool) -> str | None:
    """The prefix of the smallest TEXT or BLOB that the characters fit; None if they fit a VARCHAR.

    In strict mode CREATE TABLE fails instead.
    """
    size = length * width + compressed
    longest = _LONGEST_MARIADB_VARCHAR if session.mariadb else _LONGEST_VARCHAR
    return None if size <= longest else _blob_prefix(size)


def _blob(clause: TypeClause, session: StatementSession, name: str, width: int) -> str:
    if session.oracle and name == "blob" and not clause.lengths:
        return "longblob"
    if not clause.lengths or name not in ("text", "blob"):
        return name
    if not clause.lengths[0] and (session.mariadb or session.version < _EMPTY_TEXT_IS_TINY_SINCE):
        return name
    return _blob_prefix(clause.lengths[0] * width) + name


def _blob_prefix(size: int) -> str:
    return next((prefix for most, prefix in _BLOB_SIZES if size <= most), "long")


def _members(clause: TypeClause, session: StatementSession, name: str, width: int) -> str:
    return members_type(name, clause.members)


def members_type(name: str, members: Iterable[str]) -> str:
    """The full type of ENUM or SET."""
    return f"{name}({','.join(quote_member(member) for member in members)})"


def quote_member(member: str) -> str:
    """A member of ENUM or SET as a full type contains it."""
    return "'" + member.translate(_ESCAPES) + "'"


def _geometry_collection(clause: TypeClause, session: StatementSession, name: str, width: int) -> str:
    short = not session.mariadb and session.version >= _GEOMCOLLECTION_SINCE
    return "geomcollection" if short else name


def _vector(clause: TypeClause, session: StatementSession, name: str, width: int) -> str:
    return f"vector({clause.lengths[0] if clause.lengths else _DEFAULT_VECTOR_DIMENSIONS})"


_FORMS: Mapping[str, Callable[[TypeClause, StatementSession, str, int], str]] = {
    **dict.fromkeys(_INTEGER_WIDTHS, _integer),
    "boolean": _boolean,
    "serial": _serial,
    "decimal": _decimal,
    "float": _floating,
    "double": _floating,
    "real": _floating,
    "bit": _bit,
    "year": _year,
    **dict.fromkeys(("time", "datetime", "timestamp"), _temporal),
    "char": _fixed_length,
    "binary": _fixed_length,
    "varchar": _variable_length,
    "varbinary": _variable_length,
    "text": _blob,
    "blob": _blob,
    "enum": _members,
    "set": _members,
    "geometrycollection": _geometry_collection,
    "vector": _vector,
}
"""Type → how its full type is written; the others are their names."""


def converted_type(column_type: str, old_width: int, new_width: int, session: StatementSession) -> str:
    """The full type of a text column after CONVERT TO CHARACTER SET, which keeps its length in characters.

    Widths: bytes of the longest character of the old and the new character set.
    """
    kind = column_type.partition("(")[0].partition(" ")[0]
    if kind == "varchar":
        declared = column_type[: column_type.index(")") + 1]
        (length,) = numbers(declared)
        prefix = _too_long(length, new_width, session, compressed=declared != column_type)
        return column_type if prefix is None else column_type.replace(declared, prefix + "text", 1)
    for most, prefix in _BLOB_SIZES:
        if kind == prefix + "text":
            size = most // old_width * new_width
            return column_type.replace(kind, _blob_prefix(size) + "text", 1)
    return column_type


def to_binary(column_type: str) -> str:
    """The full type of a text column after it got the character set `binary`."""
    kind = column_type.partition("(")[0].partition(" ")[0]
    return column_type.replace(kind, _BINARY_FORMS.get(kind, kind), 1)
