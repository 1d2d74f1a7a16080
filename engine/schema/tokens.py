"""Splits a statement into words, identifiers in quotes, strings, numbers and punctuation marks.

Comments are left out; executable comments are part of the statement where the server executes them. What a
quote and a backslash mean depends on the session's sql_mode. A text that a server could not split either
raises `TokenError`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from engine.errors import EngineError
from engine.schema.session import StatementSession

WORD, QUOTED, STRING, NUMBER, BITS, MARK = "word", "quoted", "string", "number", "bits", "mark"
"""Kinds of token: a keyword or identifier; an identifier in quotes; a string; a number; a literal in
hexadecimal or binary digits; a punctuation mark."""

_TOKEN = re.compile(
    r"""
      (?P<space> [\s\x00-\x20]+ | \#[^\n]* | --(?=[\x00-\x20\x7f]|\Z)[^\n]* )
    | (?P<bits> (?:x'(?:[0-9a-f]{2})*' | b'[01]*' | 0x[0-9a-f]+ | 0b[01]+) (?![\w$]|[^\x00-\x7f]) )
    | (?P<number> (?:[0-9]+\.[0-9]*|\.[0-9]+) (?:e[+-]?[0-9]+)? | [0-9]+ (?:e[+-][0-9]+ | e[0-9]+
                  (?![\w$]|[^\x00-\x7f]))? (?![\w$]|[^\x00-\x7f]) )
    | (?P<word> (?:[\w$]|[^\x00-\x7f])+ )
    | (?P<quote> ['"`] )
    | (?P<comment> /\* )
    | (?P<mark> . )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII | re.IGNORECASE,
)
_AFTER_DOT = re.compile(r"(?:[\w$]|[^\x00-\x7f])+", re.ASCII)
_EXECUTABLE = re.compile(r"/\*(?P<mariadb>M?)!(?P<version>[0-9]{5,6})?", re.ASCII)
_PLAIN = {quote: re.compile(rf"[^{quote}\\]*") for quote in "'\"`"}
_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_MYSQL_ONLY = range(50700, 100000)
"""Versions in executable comments that MariaDB does not execute, since it has no such versions."""


class TokenError(EngineError):
    """The text is not a statement that can be split into tokens."""


class Token(NamedTuple):
    """One token; strings and identifiers without their quotes."""

    kind: str
    text: str
    upper: str
    """A word in upper case, a mark as it is, for comparisons; empty for all others."""
    end: int
    """Offset of the text after the token."""


def tokenize(statement: str, session: StatementSession) -> list[Token]:
    """The tokens of a statement. Raises `TokenError`."""
    tokens: list[Token] = []
    offset, size = 0, len(statement)
    inside_executable = False
    match_token = _TOKEN.match
    while offset < size:
        match = match_token(statement, offset)
        assert match is not None, "the pattern's last form matches any character"
        kind, start, offset = match.lastgroup, offset, match.end()
        if kind == "space":
            continue
        if kind == "word":
            word = match[0]
            if word in ("N", "n") and statement[offset : offset + 1] == "'":
                continue
            tokens.append(Token(WORD, word, word.upper(), offset))
        elif kind == "mark":
            mark = match[0]
            if mark == "*" and inside_executable and statement[offset : offset + 1] == "/":
                inside_executable = False
                offset += 1
                continue
            tokens.append(Token(MARK, mark, mark, offset))
            if mark == "." and (name := _AFTER_DOT.match(statement, offset)):
                offset = name.end()
                tokens.append(Token(WORD, name[0], name[0].upper(), offset))
        elif kind == "quote":
            quote = match[0]
            text, offset = _quoted(statement, offset, quote, session)
            identifier = quote == "`" or (quote == '"' and session.ansi_quotes)
            tokens.append(Token(QUOTED if identifier else STRING, text, "", offset))
        elif kind == "comment":
            executed = _executed(statement, start, session)
            if executed is None or inside_executable:
                offset = _comment_end(statement, start)
            else:
                offset, inside_executable = executed, True
        else:
            if kind == "number" and tokens and _identifier_follows(match[0], tokens[-1], statement, start):
                offset = start + 1
                tokens.append(Token(MARK, ".", ".", offset))
                name = _AFTER_DOT.match(statement, offset)
                assert name is not None
                offset = name.end()
                tokens.append(Token(WORD, name[0], name[0].upper(), offset))
            else:
                tokens.append(Token(kind or MARK, match[0], "", offset))
    if inside_executable:
        raise TokenError("an executable comment has no end")
    return tokens


def _identifier_follows(number: str, before: Token, statement: str, start: int) -> bool:
    """Whether a number that starts with a dot is a dot and an identifier, as in `shop.1st`."""
    adjacent = before.end == start and before.kind in (WORD, QUOTED)
    return adjacent and number.startswith(".") and bool(_AFTER_DOT.match(statement, start + 1))


def _quoted(statement: str, offset: int, quote: str, session: StatementSession) -> tuple[str, int]:
    """The content of quotes that start before `offset`, and the offset after the closing quote."""
    escapes = session.backslash_escapes and quote != "`" and not (quote == '"' and session.ansi_quotes)
    plain = _PLAIN[quote]
    parts: list[str] = []
    while True:
        match = plain.match(statement, offset)
        assert match is not None, "the pattern matches the empty string"
        parts.append(match[0])
        offset = match.end()
        if offset == len(statement):
            raise TokenError(f"the quote {quote} has no end")
        character, following = statement[offset], statement[offset + 1 : offset + 2]
        if character == "\\":
            if escapes and following:
                parts.append(_ESCAPES.get(following, following))
                offset += 2
            else:
                parts.append(character)
                offset += 1
        elif following == quote:
            parts.append(quote)
            offset += 2
        else:
            return "".join(parts), offset + 1


def _executed(statement: str, start: int, session: StatementSession) -> int | None:
    """The offset of an executable comment's content if the server executes it; None for other comments."""
    match = _EXECUTABLE.match(statement, start)
    if match is None or (match["mariadb"] and not session.mariadb):
        return None
    if match["version"] is None:
        return match.end()
    digits = match["version"]
    if len(digits) == 6 and not session.mariadb and session.version < _SIX_DIGITS_SINCE:
        digits = digits[:5]
    required = int(digits)
    if session.mariadb and not match["mariadb"] and required in _MYSQL_ONLY:
        return None
    if required > _version_number(session.version):
        return None
    return match.start("version") + len(digits)


_SIX_DIGITS_SINCE = (8, 0, 0)


def _version_number(version: tuple[int, ...]) -> int:
    """The version as servers write it in executable comments: 8.0.36 is 80036."""
    major, minor, patch = (*version, 0, 0, 0)[:3]
    return major * 10000 + minor * 100 + patch


def _comment_end(statement: str, start: int) -> int:
    """The offset after a comment; an executable comment that is not executed may contain another comment."""
    end = statement.find("*/", start + 2)
    if _EXECUTABLE.match(statement, start):
        inner = statement.find("/*", start + 2)
        while 0 <= inner < end:
            end = statement.find("*/", end + 2)
            inner = statement.find("/*", statement.find("*/", inner) + 2)
    if end < 0:
        raise TokenError("a comment has no end")
    return end + 2
