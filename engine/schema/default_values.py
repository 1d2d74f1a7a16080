"""Reads the value after DEFAULT: a constant, or an expression, which is stepped over."""

from __future__ import annotations

from dataclasses import replace

from engine.schema.declarations import Default
from engine.schema.token_reader import TokenReader, UnexpectedTokenError
from engine.schema.tokens import BITS, NUMBER, QUOTED, STRING, WORD

_TIME_LITERALS = frozenset({"DATE", "TIME", "TIMESTAMP"})
_CONSTANTS = {"NULL": Default("null"), "TRUE": Default("number", "1"), "FALSE": Default("number", "0")}


def read_default(reader: TokenReader) -> Default:
    """The value after DEFAULT. Raises `UnexpectedTokenError`."""
    if reader.upper == "(":
        return _parenthesized_default(reader)
    word = reader.upper
    string_follows = reader.following().kind in (STRING, BITS)
    if word in _CONSTANTS:
        reader.step()
        return _CONSTANTS[word]
    if string_follows and word.startswith("_"):
        reader.step()
        return replace(_literal(reader), introduced=True)
    if string_follows and word in _TIME_LITERALS:
        reader.step()
    elif reader.token.kind in (WORD, QUOTED) or reader.upper == "@":
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
        text = reader.string()
        return Default("string", text) if text or not reader.session.empty_string_is_null else Default("null")
    if reader.token.kind == BITS:
        return Default("bits", reader.step().text)
    sign = "-" if reader.take("-") else ""
    if not sign:
        reader.take("+")
    if reader.token.kind != NUMBER:
        raise reader.unexpected("a value")
    return Default("number", sign + reader.step().text)


def _skip_expression(reader: TokenReader) -> None:
    """Step over a primary expression: a function call, a variable, CASE, a sequence's value."""
    while reader.take("@"):
        pass
    if reader.take("CASE"):
        while not reader.take("END"):
            reader.step()
        return
    if reader.take("NEXT", "VALUE", "FOR") or reader.take("PREVIOUS", "VALUE", "FOR"):
        reader.table()
        return
    reader.column()
    if reader.upper == "(":
        reader.skip_parentheses()
