"""Which changes of a column's type keep every value as it is.

ALTER TABLE converts the rows that a table has without writing them into the binlog. Where the conversion may
change values, what was read before is no longer what the table contains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.binlog.collations import WIDTH, canonical
from engine.binlog.table_definition import COMPRESSED, UNKNOWN_CHARSET, ColumnDefinition
from engine.schema.member_texts import WIDE
from engine.schema.type_numbers import INTEGER_BYTES, numbers

_TEXT_SIZES = {"tinytext": 0xFF, "text": 0xFFFF, "mediumtext": 0xFFFFFF, "longtext": 0xFFFFFFFF}
_BLOB_SIZES = {name.replace("text", "blob"): size for name, size in _TEXT_SIZES.items()}
_ALL_OF_UNICODE = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
_CONTAINS = {"utf8mb3": frozenset({"ucs2", "latin1", "ascii"}), "latin1": frozenset({"ascii"})}
"""Character set → others all of whose characters it contains; `_ALL_OF_UNICODE` contain all characters."""


def keeps_values(old: ColumnDefinition, new: ColumnDefinition, strict: bool) -> bool:
    """Whether every value of the old column is the same value in the new one, or the ALTER fails.

    `strict`: the statement fails where a value does not fit.
    """
    if old.generated is not None and new.generated is not None:
        return False  # Its expression may be another one.
    if new.generated is not None:
        return False
    if old.nullable and not new.nullable and (not strict or new.data_type == "timestamp"):
        return False
    return _keeps_text(old, new, strict) and _keeps_type(old, new, strict)


def _keeps_text(old: ColumnDefinition, new: ColumnDefinition, strict: bool) -> bool:
    if old.charset is None or new.charset is None:
        return old.charset == new.charset
    before, after = canonical(old.charset), canonical(new.charset)
    if UNKNOWN_CHARSET in (before, after):
        # A column of unknown character set that stays so has its table's default, as before.
        return before == after
    if before == after:
        return True
    contains = after in _ALL_OF_UNICODE or before in _CONTAINS.get(after, ())
    return contains and (strict or _fits(old, new, before, after))


def _fits(old: ColumnDefinition, new: ColumnDefinition, before: str, after: str) -> bool:
    """Whether the longest TEXT fits in another character set, in which its characters may take more bytes."""
    sizes = _TEXT_SIZES.get(old.data_type), _TEXT_SIZES.get(new.data_type)
    same_bytes = (before == "ascii" and after not in WIDE) or (before, after) == ("utf8mb3", "utf8mb4")
    # No packet contains a LONGTEXT of its full size.
    if sizes[0] is None or sizes[1] is None or same_bytes or old.data_type == "longtext":
        return True
    return sizes[0] * WIDTH[after] <= sizes[1]


def _keeps_type(old: ColumnDefinition, new: ColumnDefinition, strict: bool) -> bool:
    if _without_width(old.column_type) == _without_width(new.column_type):
        return True
    kind = _FAMILY.get(old.data_type)
    if kind is None or _FAMILY.get(new.data_type) != kind:
        return False
    return _RULES[kind](old, new, strict)


def _without_width(column_type: str) -> str:
    """Display widths and ZEROFILL do not change values."""
    kind = column_type.partition("(")[0].partition(" ")[0]
    if kind in INTEGER_BYTES or kind == "year":
        return kind + (" unsigned" if "unsigned" in column_type else "")
    return column_type.replace(" zerofill", "").replace(COMPRESSED, "")


def _integer(old: ColumnDefinition, new: ColumnDefinition, strict: bool) -> bool:
    if strict:
        return True
    before, after = INTEGER_BYTES[old.data_type], INTEGER_BYTES[new.data_type]
    return (old.unsigned == new.unsigned and before <= after) or (
        old.unsigned and not new.unsigned and before < after
    )


def _decimal(old: ColumnDefinition, new: ColumnDefinition, strict: bool) -> bool:
    before, after = numbers(old.column_type), numbers(new.column_type)
    return before[1] == after[1] and before[0] <= after[0] and old.unsigned >= new.unsigned


def _floating(old: ColumnDefinition, new: ColumnDefinition, strict: bool) -> bool:
    wider = old.data_type == new.data_type or new.data_type == "double"
    return wider and not numbers(new.column_type) and old.unsigned >= new.unsigned


def _text(old: ColumnDefinition, new: ColumnDefinition, strict: bool) -> bool:
    """CHAR loses the spaces at the end of values, so it keeps only values of CHAR."""
    if new.data_type == "char":
        return old.data_type == "char" and numbers(old.column_type) <= numbers(new.column_type)
    if new.data_type in _TEXT_SIZES and old.data_type not in _TEXT_SIZES:
        width = WIDTH.get(canonical(new.charset or ""), 4)
        return _length(old, {}) * width <= _TEXT_SIZES[new.data_type]
    return _length(old, _TEXT_SIZES) <= _length(new, _TEXT_SIZES)


def _binary(old: ColumnDefinition, new: ColumnDefinition, strict: bool) -> bool:
    """BINARY pads its values with zeros, so it keeps none of another length."""
    return new.data_type != "binary" and _length(old, _BLOB_SIZES) <= _length(new, _BLOB_SIZES)


def _length(column: ColumnDefinition, sizes: Mapping[str, int]) -> int:
    """The longest value: in characters for CHAR and VARCHAR, otherwise in bytes."""
    return sizes.get(column.data_type) or (*numbers(column.column_type), 1)[0]


def _members(old: ColumnDefinition, new: ColumnDefinition, strict: bool) -> bool:
    before, after = old.members or (), new.members or ()
    return old.data_type == new.data_type and after[: len(before)] == before


def _fraction(old: ColumnDefinition, new: ColumnDefinition, strict: bool) -> bool:
    same = old.data_type == new.data_type
    return same and (*numbers(old.column_type), 0)[0] <= (*numbers(new.column_type), 0)[0]


_RULES: Mapping[str, Callable[[ColumnDefinition, ColumnDefinition, bool], bool]] = {
    "integer": _integer,
    "decimal": _decimal,
    "floating": _floating,
    "text": _text,
    "binary": _binary,
    "members": _members,
    "fraction": _fraction,
}
_FAMILY = {
    **dict.fromkeys(INTEGER_BYTES, "integer"),
    "decimal": "decimal",
    **dict.fromkeys(("float", "double"), "floating"),
    **dict.fromkeys(("char", "varchar", *_TEXT_SIZES), "text"),
    **dict.fromkeys(("binary", "varbinary", *_BLOB_SIZES), "binary"),
    **dict.fromkeys(("enum", "set"), "members"),
    **dict.fromkeys(("time", "datetime", "timestamp"), "fraction"),
}
"""Type → the family whose rule applies; values of other types are kept only by the same type."""
