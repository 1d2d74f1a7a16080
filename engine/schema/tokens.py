"""Splits a statement into words, identifiers in quotes, strings, numbers and punctuation marks.

Comments are left out; executable comments are part of the statement where the server executes them. What a
quote and a backslash mean depends on the session's sql_mode. A text that a server could not split either
raises `TokenError`.
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

from engine.errors import EngineError
from engine.schema.session import StatementSession

WORD, QUOTED, STRING, NUMBER, BITS, MARK = "word", "quoted", "string", "number", "bits", "mark"
"""Kinds of token: a keyword or identifier; an identifier in quotes; a string; a number; a literal in
hexadecimal or binary digits; a punctuation mark."""

_TOKEN = re.compile(
    r"""
      [\s\x00-\x20]*
      (?:
        (?P<bits> (?:x'(?:[0-9a-f]{2})*' | b'[01]*' | 0x[0-9a-f]+ | 0b[01]+) (?![\w$]|[^\x00-\x7f]) )
      | (?P<number> (?:[0-9]+\.[0-9]*|\.[0-9]+) (?:e[+-]?[0-9]+)?
                  | [0-9]+ (?:e[+-][0-9]+ | e[0-9]+ (?![\w$]|[^\x00-\x7f]))? (?![\w$]|[^\x00-\x7f]) )
      | (?P<word> (?:[\w$]|[^\x00-\x7f])+ )
      | (?P<plain> '[^'\\]*'(?!') | `[^`]*`(?!`) )
      | (?P<quote> ['"`] )
      | (?P<line> \#[^\n]* | --(?=[\x00-\x20\x7f]|\Z)[^\n]* )
      | (?P<comment> /\* )
      | (?P<mark> :?= | . )
      | (?P<end> \Z )
      )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII | re.IGNORECASE,
)
"""`plain`: in quotes without escapes. `line`: a comment up to the end of the line."""
_AFTER_DOT = re.compile(r"(?:[\w$]|[^\x00-\x7f])+", re.ASCII)
_EXECUTABLE = re.compile(r"/\*(?P<mariadb>M?)!(?P<version>[0-9]{5,6})?", re.ASCII)
_PLAIN = {quote: re.compile(rf"[^{quote}\\]*") for quote in "'\"`]"}
"""A closing quote → what neither it nor a backslash interrupts."""
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


def literal_bytes(literal: str) -> bytes:
    """The bytes of a literal in hexadecimal or binary digits, of which the first byte may lack some."""
    digits = literal[2:].rstrip("'")
    if "x" in literal[:2].lower():
        return bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
    return int(digits or "0", 2).to_bytes((len(digits) + 7) // 8, "big")


def tokenize(statement: str, session: StatementSession, most: int = sys.maxsize) -> list[Token]:
    """The tokens of a statement, or its first ones, `most` and perhaps one more. Raises `TokenError`."""
    tokens: list[Token] = []
    offset, size = 0, len(statement)
    inside_executable = False
    match_token = _TOKEN.match
    while offset < size and len(tokens) < most:
        match = match_token(statement, offset)
        assert match is not None, "the pattern matches any character, and the end"
        kind, offset = match.lastgroup, match.end()
        text = match[kind or 0]
        if kind == "word":
            if text in ("N", "n") and statement.startswith("'", offset):
                continue
            tokens.append(Token(WORD, text, text.upper(), offset))
        elif kind == "plain":
            tokens.append(Token(STRING if text[0] == "'" else QUOTED, text[1:-1], "", offset))
        elif kind == "mark":
            if text == "*" and inside_executable and statement.startswith("/", offset):
                inside_executable = False
                offset += 1
                continue
            if text == "[" and session.bracket_quotes:
                quoted, offset = _quoted(statement, offset, "]", session)
                tokens.append(Token(QUOTED, quoted, "", offset))
                continue
            # `:=` is the same where a value follows.
            tokens.append(Token(MARK, text, "=" if text == ":=" else text, offset))
            if text == ".":
                offset = _name_after_dot(statement, offset, tokens)
        elif kind == "quote":
            quoted, offset = _quoted(statement, offset, text, session)
            identifier = text == "`" or (text == '"' and session.ansi_quotes)
            tokens.append(Token(QUOTED if identifier else STRING, quoted, "", offset))
        elif kind == "comment":
            start = offset - len(text)
            executed = None if inside_executable else _executed(statement, start, session)
            offset = _comment_end(statement, start) if executed is None else executed
            inside_executable = inside_executable or executed is not None
        elif kind == "bits":
            tokens.append(Token(BITS, text, "", offset))
        elif kind == "number":
            start = offset - len(text)
            if _identifier_follows(text, tokens, statement, start):
                tokens.append(Token(MARK, ".", ".", start + 1))
                offset = _name_after_dot(statement, start + 1, tokens)
            else:
                tokens.append(Token(NUMBER, text, "", offset))
    if inside_executable and offset >= size:
        raise TokenError("an executable comment has no end")
    return tokens


def _name_after_dot(statement: str, offset: int, tokens: list[Token]) -> int:
    """Read an identifier that directly follows a dot, which may begin with a digit; returns where it ends."""
    name = _AFTER_DOT.match(statement, offset)
    if name is None:
        return offset
    tokens.append(Token(WORD, name[0], name[0].upper(), name.end()))
    return name.end()


def _identifier_follows(number: str, tokens: list[Token], statement: str, start: int) -> bool:
    """Whether a number that starts with a dot is a dot and an identifier, as in `shop.1st`."""
    if not number.startswith(".") or not tokens or tokens[-1].end != start:
        return False
    return tokens[-1].kind in (WORD, QUOTED) and _AFTER_DOT.match(statement, start + 1) is not None


def _quoted(statement: str, offset: int, quote: str, session: StatementSession) -> tuple[str, int]:
    """The content of quotes that start before `offset`, and the offset after the closing quote, `quote`."""
    escapes = session.backslash_escapes and (quote == "'" or (quote == '"' and not session.ansi_quotes))
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
