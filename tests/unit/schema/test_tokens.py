"""Tokens: what separates them, what a quote means, and which executable comments are executed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.schema.session import StatementSession
from engine.schema.tokens import TokenError, tokenize
from tests.support.ddl import MARIADB_11, MYSQL_9, MYSQL_56, session

ANSI_QUOTES, MSSQL, NO_BACKSLASH_ESCAPES = 1 << 2, 1 << 10, 1 << 20


def texts(statement: str, settings: StatementSession | None = None) -> list[str]:
    return [token.text for token in tokenize(statement, settings or session())]


def kinds(statement: str, settings: StatementSession | None = None) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in tokenize(statement, settings or session())]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("a b", ["a", "b"]),
        ("a/* x */b", ["a", "b"]),
        ("a -- x\nb", ["a", "b"]),
        ("a --x", ["a", "-", "-", "x"]),
        ("a --", ["a"]),
        ("a # x\nb", ["a", "b"]),
        ("`a``b`", ["a`b"]),
        ("'it''s'", ["it's"]),
        ("'it\\'s'", ["it's"]),
        (r"'\n\t\0\%\x'", ["\n\t\0\\%x"]),
        ('"a""b"', ['a"b']),
        ("''", [""]),
        ("N'x'", ["x"]),
        ("n", ["n"]),
        ("1.5 .5 1e5 1.e3 1e-5", ["1.5", ".5", "1e5", "1.e3", "1e-5"]),
        ("1a 5e 0x4g $a", ["1a", "5e", "0x4g", "$a"]),
        ("0x41 x'41' b'01' 0b1", ["0x41", "x'41'", "b'01'", "0b1"]),
        ("shop.1st", ["shop", ".", "1st"]),
        ("`shop`.5", ["shop", ".", "5"]),
        ("t .5", ["t", ".5"]),
        ("bücher_表", ["bücher_表"]),
        ("a\x00b", ["a", "b"]),
        ("/* a /* b */ c", ["c"]),
        ("`a/*b`", ["a/*b"]),
        ("'-- a'", ["-- a"]),
    ],
)
def test_the_texts_of_tokens(statement: str, expected: list[str]) -> None:
    assert texts(statement) == expected


@pytest.mark.parametrize("statement", ["'a", "`a", '"a', "/* a", "/*! a", "'a\\'", "/*!99999 a /* b */"])
def test_what_has_no_end(statement: str) -> None:
    with pytest.raises(TokenError, match="has no end"):
        tokenize(statement, session())


def test_double_quotes_depend_on_the_mode() -> None:
    assert kinds('"a\\"b"') == [("string", 'a"b')]
    assert kinds('"a\\"', session(sql_mode=ANSI_QUOTES)) == [("quoted", "a\\")]


def test_brackets_depend_on_the_mode() -> None:
    assert texts("[a", session(MARIADB_11)) == ["[", "a"]
    assert kinds(r"[a]]`\].[b c]", session(MARIADB_11, sql_mode=MSSQL)) == [
        ("quoted", "a]`\\"),
        ("mark", "."),
        ("quoted", "b c"),
    ]
    assert texts("[a]", session(sql_mode=MSSQL)) == ["[", "a", "]"]


def test_backslashes_depend_on_the_mode() -> None:
    assert texts(r"'a\' 'b'", session(sql_mode=NO_BACKSLASH_ESCAPES)) == ["a\\", "b"]


@pytest.mark.parametrize(
    ("comment", "mysql_56", "mysql_9", "mariadb"),
    [
        ("/*! x */", True, True, True),
        ("/*!50100 x */", True, True, True),
        ("/*!50624x*/", True, True, True),
        ("/*!50700 x */", False, True, False),
        ("/*!80000 x */", False, True, False),
        ("/*!080000 x */", None, True, False),
        ("/*!99999 x */", False, False, False),
        ("/*!100100 x */", None, False, True),
        ("/*!110900 x */", None, False, False),
        ("/*M! x */", False, False, True),
        ("/*M!100301 x */", False, False, True),
        ("/*M!50700 x */", False, False, True),
        ("/*M!120000 x */", False, False, False),
        ("/*!50000 x /* inner */ */", True, True, True),
        ("/*+ x */", False, False, False),
    ],
)
def test_executable_comments(comment: str, mysql_56: bool | None, mysql_9: bool, mariadb: bool) -> None:
    """MySQL 5.6 reads no version of six digits."""
    for version, executed in ((MYSQL_56, mysql_56), (MYSQL_9, mysql_9), (MARIADB_11, mariadb)):
        if executed is not None:
            assert ("x" in texts(f"a {comment} b", session(version))) == executed, version


@given(
    st.text(alphabet=st.sampled_from("a1eE.'\"`[]\\/*!M-#\n ()$é5x0bN")),
    st.sampled_from([0, ANSI_QUOTES, MSSQL, NO_BACKSLASH_ESCAPES]),
)
def test_any_text_has_tokens_or_a_token_error(text: str, sql_mode: int) -> None:
    for version in (MYSQL_9, MARIADB_11):
        try:
            tokens = tokenize(text, session(version, sql_mode=sql_mode))
        except TokenError:
            continue
        assert all(token.text or token.kind in ("string", "quoted") for token in tokens)
        assert [token.end for token in tokens] == sorted(token.end for token in tokens)


@given(st.text())
def test_quoting_is_reversed(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace("'", "''")
    assert kinds(f"'{quoted}'") == [("string", text)]
    assert kinds("`" + text.replace("`", "``") + "`") == [("quoted", text)]
