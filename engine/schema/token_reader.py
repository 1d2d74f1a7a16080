"""Reads tokens one after the other: keywords, names, literals, and what is stepped over.

What cannot be read raises `UnexpectedTokenError`; the statement then counts as not understood.
"""

from __future__ import annotations

import re

from engine.binlog.collations import canonical
from engine.errors import EngineError
from engine.schema.changes import TableName
from engine.schema.session import StatementSession
from engine.schema.tokens import BITS, NUMBER, QUOTED, STRING, WORD, Token

_LONGEST_NUMBER = 20
"""Digits."""
_FILE_NAME = "#mysql50#"
"""Prefix of a name that is a file's."""
_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")
"""Characters outside Unicode's Basic Multilingual Plane, which names cannot have: MySQL puts `?` for each."""
_END = Token("end", "", "", 0)


class UnexpectedTokenError(EngineError):
    """The statement continues in a way that the reader does not know."""


class TokenReader:
    """A position in a list of tokens."""

    def __init__(self, tokens: list[Token], session: StatementSession) -> None:
        self._tokens = [*tokens, _END]
        self.position = 0
        """Index of the next token; may be set to one that it was before."""
        self.session = session

    @property
    def token(self) -> Token:
        """The next token; at the end one without text."""
        return self._tokens[self.position]

    @property
    def upper(self) -> str:
        """The next token if it is a word, in upper case, or a mark; otherwise empty."""
        return self._tokens[self.position].upper

    @property
    def at_end(self) -> bool:
        """Whether no token is left; a final semicolon does not count."""
        if self.upper == ";" and self.following() is _END:
            self.position += 1
        return self.token is _END

    def ahead(self, *words: str) -> bool:
        """Whether these words or marks come next."""
        tokens = self._tokens
        start = self.position
        for index, word in enumerate(words):
            position = start + index
            if position >= len(tokens) or tokens[position].upper != word:
                return False
        return True

    def following(self, offset: int = 1) -> Token:
        """The token after the next one, or one further on; at the end one without text."""
        return self._tokens[min(self.position + offset, len(self._tokens) - 1)]

    def take(self, *words: str) -> bool:
        """Step over these words if they come next; returns whether they did."""
        if self.ahead(*words):
            self.position += len(words)
            return True
        return False

    def take_one_of(self, words: frozenset[str]) -> str:
        """Step over the next token if it is one of the words; returns it, or an empty string."""
        word = self.upper
        if word and word in words:
            self.position += 1
            return word
        return ""

    def expect(self, *words: str) -> None:
        """Step over these words. Raises `UnexpectedTokenError`."""
        if not self.take(*words):
            raise self.unexpected(" ".join(words))

    def step(self) -> Token:
        """The next token, stepped over. Raises `UnexpectedTokenError` at the end."""
        token = self.token
        if token is _END:
            raise self.unexpected("more")
        self.position += 1
        return token

    def unexpected(self, expected: str) -> UnexpectedTokenError:
        """The error that something else was expected here."""
        found = repr(self.token.text) if self.token is not _END else "the end"
        return UnexpectedTokenError(f"{found} instead of {expected}")

    def name(self) -> str:
        """An identifier. Raises `UnexpectedTokenError`."""
        if self.token.kind not in (WORD, QUOTED):
            raise self.unexpected("a name")
        return _identifier(self.step().text)

    def optional_name(self, *unless: str) -> str | None:
        """An identifier, unless another token or one of these words comes next."""
        if self.token.kind == QUOTED or (self.token.kind == WORD and self.upper not in unless):
            return _identifier(self.step().text)
        return None

    def name_or_string(self) -> str:
        """An identifier or a string. Raises `UnexpectedTokenError`."""
        return self.string() if self.token.kind == STRING else self.name()

    def string(self) -> str:
        """A string. Raises `UnexpectedTokenError`."""
        if self.token.kind != STRING:
            raise self.unexpected("a string")
        text = self.step().text
        while self.token.kind == STRING:
            text += self.step().text
        return text

    def number(self) -> int:
        """An integer. Raises `UnexpectedTokenError`."""
        return self._integer(self.token.text)

    def length(self) -> int:
        """An integer, or what comes before the point of a number. Raises `UnexpectedTokenError`."""
        return self._integer(self.token.text.partition(".")[0] or "0")

    def _integer(self, digits: str) -> int:
        """The next token, which has these digits."""
        if self.token.kind != NUMBER or not digits.isdecimal() or len(digits) > _LONGEST_NUMBER:
            raise self.unexpected("a number")
        self.step()
        return int(digits)

    def charset(self) -> str:
        """The canonical name of a character set or collation, or `default`. Raises `UnexpectedTokenError`."""
        return canonical(self.name_or_string(), self.session.utf8)

    def database(self) -> str:
        """A database's name, as table maps have it. Raises `UnexpectedTokenError`."""
        return self.session.names.stored_database(self.name())

    def table(self) -> TableName:
        """A table's name, as table maps have it; the default database counts for a name without one.

        Raises `UnexpectedTokenError`.
        """
        database, table = self.session.database, ""
        if not self.take("."):
            table = self.name()
        if not table or self.take("."):
            database, table = table or database, self.name()
        if table.startswith(_FILE_NAME) or database.startswith(_FILE_NAME):
            raise UnexpectedTokenError(f"the table {table} is given by its file's name")
        return self.session.names.stored(TableName(database, table))

    def column(self) -> str:
        """A column's name, possibly after its table's. Raises `UnexpectedTokenError`."""
        self.take(".")
        name = self.name()
        while self.take("."):
            name = self.name()
        return name

    def skip_parentheses(self) -> None:
        """Step over a parenthesis with its content. Raises `UnexpectedTokenError`."""
        self.expect("(")
        depth = 1
        while depth:
            mark = self.step().upper
            depth += (mark == "(") - (mark == ")")

    def skip_clause(self, *until: str) -> None:
        """Step over everything before the next comma or closing parenthesis of this level, or these words."""
        while not self.at_end and self.upper not in (",", ")", *until):
            if self.upper == "(":
                self.skip_parentheses()
            else:
                self.step()

    def skip_value(self) -> None:
        """Step over an option's value: a name, a number, a string or a list in parentheses."""
        if self.upper == "(":
            self.skip_parentheses()
            return
        self.take("-")
        if self.token.kind not in (WORD, QUOTED, STRING, NUMBER, BITS):
            raise self.unexpected("a value")
        self.step()

    def skip_wait(self) -> None:
        """Step over MariaDB's WAIT n and NOWAIT. Raises `UnexpectedTokenError`."""
        if self.take("WAIT"):
            self.number()
        else:
            self.take("NOWAIT")

    def words(self) -> frozenset[str]:
        """All words and identifiers of the statement, case-folded."""
        names = (_identifier(token.text) for token in self._tokens if token.kind in (WORD, QUOTED))
        return frozenset(name.casefold().removeprefix(_FILE_NAME) for name in names)


def _identifier(text: str) -> str:
    return text if text.isascii() else _BEYOND_BMP.sub("?", text)
