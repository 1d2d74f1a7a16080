"""Character sets: every collation id, every byte and every pair of bytes, against what real servers say."""

from __future__ import annotations

import pyarrow as pa
import pymysql
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymysql.constants import ER

from engine.binlog.charset_tables import MULTI_BYTE_CHARSETS, SINGLE_BYTE_CHARSETS
from engine.binlog.charsets import collation_charset
from engine.binlog.column import Column
from engine.binlog.field_types import FieldType
from engine.decode.arrow.codec import Counters, Options
from engine.decode.columns import codec_for
from engine.errors import EngineError
from tests.servers import Server
from tests.support.charset_characters import characters_of
from tests.support.column_cells import column, decode


def text_column(charset: str) -> Column:
    return column(FieldType.VARCHAR, 1000, charset=charset)


@pytest.mark.parametrize("charset", sorted(SINGLE_BYTE_CHARSETS | MULTI_BYTE_CHARSETS))
def test_texts_of_all_characters(charset: str) -> None:
    encode = {c: sequence for sequence, c in characters_of(charset).items()}
    characters = sorted(encode)
    texts: list[str | None] = ["".join(characters[at : at + 50]) for at in range(0, len(characters), 50)]
    texts = ["", "ASCII", None, *texts, "ONLY ASCII AT THE END, AND LONG ENOUGH FOR SEVERAL WORDS"]
    cells = [None if text is None else b"".join(encode[c] for c in text) for text in texts]
    counters = Counters()
    array = decode(text_column(charset), cells, counters=counters)
    assert array.type == pa.string()
    assert array.to_pylist() == texts
    assert counters.values == {}


UNICODE = {"ucs2": "utf_16_be", "utf16": "utf_16_be", "utf16le": "utf_16_le", "utf32": "utf_32_be"}


@pytest.mark.parametrize("charset", [*UNICODE, "gb18030"])
@given(texts=st.lists(st.none() | st.text(max_size=20), max_size=10))
def test_unicode_texts(charset: str, texts: list[str | None]) -> None:
    if charset == "ucs2":
        texts = [text and "".join(c for c in text if ord(c) < 0x10000) for text in texts]
    if charset == "gb18030":
        texts = [text and text.replace("\ue7c7", "").replace("\u1e3f", "") for text in texts]
    cells = [None if text is None else text.encode(UNICODE.get(charset, charset)) for text in texts]
    counters = Counters()
    assert decode(text_column(charset), cells, counters=counters).to_pylist() == texts
    assert counters.values == {}


@pytest.mark.parametrize(
    ("charset", "stored", "want", "invalid"),
    [
        ("cp1256", b"a\x8ab", "a?b", 1),
        ("tis620", b"\xdb", "\ufffd", 1),
        ("gbk", b"\x81\xffa", "?a", 1),
        ("gbk", b"\x81", "?", 1),
        ("gbk", b"\x81 ", "? ", 1),
        ("gbk", b"\xa1@@", "?@", 1),
        ("gb2312", b"\xaa@", "?@", 1),
        ("euckr", b"\xc9Aa", "?a", 1),
        ("ujis", b"\x8f\xa1\xa1\xa4\xa2", "?あ", 1),
        ("ujis", b"\x8f\xa1", "?", 1),
        ("gb18030", b"\x81\x30", "?0", 1),
        ("gb18030", b"\xfe\x39\xfe\x39!", "?!", 1),
        ("big5", b"\xa1\x5a", "\ufffd", 1),
        ("utf16", b"\xd8\x3d", "\ufffd", 1),
        ("utf16", b"\xdc\x00\x00a", "\ufffda", 1),
        ("utf16", b"\x00a\x00", "a\ufffd", 1),
        ("ucs2", b"\xd8\x3d\xdc\x00", "\ufffd\ufffd", 2),
        ("utf32", b"\x00\x11\x00\x00", "\ufffd", 1),
    ],
)
def test_bytes_that_are_not_a_character(charset: str, stored: bytes, want: str, invalid: int) -> None:
    counters = Counters()
    assert decode(text_column(charset), [stored], counters=counters).to_pylist() == [want]
    assert counters.values == {"invalid_characters": invalid}


@pytest.mark.parametrize("charset", sorted(SINGLE_BYTE_CHARSETS | MULTI_BYTE_CHARSETS | UNICODE.keys()))
@given(cells=st.lists(st.binary(max_size=9), max_size=30))
def test_any_bytes_give_valid_text(charset: str, cells: list[bytes]) -> None:
    decode(text_column(charset), cells)


def test_an_unknown_character_set_names_the_column() -> None:
    with pytest.raises(EngineError, match="column c has the unknown character set klingon"):
        codec_for(text_column("klingon"), Options())


def test_collations_of_all_kinds() -> None:
    wants = {8: "latin1", 63: "binary", 255: "utf8mb4", 1024 + 28: "gbk", 2304: "utf8mb4", 3271: "utf32"}
    assert {collation: collation_charset(collation) for collation in wants} == wants


@pytest.mark.server
def test_every_collation_of_the_server(server: Server) -> None:
    table = "collation_character_set_applicability" if "mariadb" in server.flavor else "collations"
    rows = server.query(f"SELECT id, character_set_name FROM information_schema.{table} WHERE id IS NOT NULL")
    assert len(rows) > 200
    wants = {int(collation): "utf8mb3" if name == "utf8" else name for collation, name in rows}
    assert {collation: collation_charset(collation) for collation in wants} == wants


def converted(server: Server, charset: str, sequences: list[bytes]) -> list[str]:
    """What the server makes of each sequence of bytes in UTF-8."""
    server.execute("CREATE DATABASE IF NOT EXISTS charsets", "USE charsets", "DROP TABLE IF EXISTS sequences")
    server.execute("CREATE TABLE sequences (id int PRIMARY KEY, bytes varbinary(20))")
    for at in range(0, len(sequences), 5000):
        rows = ",".join(f"({i},x'{s.hex()}')" for i, s in enumerate(sequences[at : at + 5000], at))
        server.execute(f"INSERT INTO sequences VALUES {rows}")
    found = server.query(
        f"SELECT HEX(CONVERT(CONVERT(bytes USING {charset}) USING utf8mb4)) FROM sequences ORDER BY id"
    )
    server.execute("DROP TABLE sequences")
    return [bytes.fromhex(text).decode() for (text,) in found]


@pytest.mark.server
def test_every_single_byte_character_as_the_server_converts_it(server: Server) -> None:
    for charset in sorted(SINGLE_BYTE_CHARSETS):
        sequences = sorted(characters_of(charset))
        assert decode(text_column(charset), sequences).to_pylist() == converted(server, charset, sequences)
        undefined = [bytes([byte]) for byte in range(256) if bytes([byte]) not in sequences]
        assert set(converted(server, charset, undefined)) <= {"?", "\ufffd", ""}


@pytest.mark.server
def test_every_multi_byte_character_as_the_server_converts_it(server: Server) -> None:
    known = {
        name for (name,) in server.query("SELECT character_set_name FROM information_schema.character_sets")
    }
    for charset in sorted(MULTI_BYTE_CHARSETS & known):
        sequences = sorted(characters_of(charset))
        assert decode(text_column(charset), sequences).to_pylist() == converted(server, charset, sequences)


@pytest.mark.server
@pytest.mark.parametrize("charset", sorted(MULTI_BYTE_CHARSETS))
def test_pairs_that_the_server_stores(server: Server, charset: str) -> None:
    """Among them are some that are no character: they are one `?`, also if their second byte is ASCII."""
    server.execute("CREATE DATABASE IF NOT EXISTS charsets", "USE charsets", "DROP TABLE IF EXISTS pairs")
    try:
        server.execute(f"CREATE TABLE pairs (id INT PRIMARY KEY, t VARCHAR(9) CHARACTER SET {charset})")
    except pymysql.err.OperationalError as error:
        if error.args[0] != ER.UNKNOWN_CHARACTER_SET:
            raise
        pytest.skip("this server does not have the character set")
    leads, trails = range(0x80, 0x100), (*range(0x20, 0x80), *range(0x80, 0x100, 9))
    pairs = [bytes((lead, trail)) for lead in leads for trail in trails]
    rows = ",".join(f"({number},x'{pair.hex()}')" for number, pair in enumerate(pairs))
    server.execute("SET sql_mode = ''", f"INSERT IGNORE INTO charsets.pairs VALUES {rows}")
    found = server.query("SELECT HEX(t), HEX(CONVERT(t USING utf8mb4)) FROM charsets.pairs WHERE t <> ''")
    stored, shown = ([bytes.fromhex(text) for text in column] for column in zip(*found, strict=True))
    assert decode(text_column(charset), stored).to_pylist() == [text.decode() for text in shown]


@pytest.mark.server
def test_unicode_as_the_server_converts_it(mysql97: Server) -> None:
    points = [*range(0x20, 0x3000, 7), 0xFFFD, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF]
    for charset, codec in {**UNICODE, "gb18030": "gb18030"}.items():
        texts = [chr(p) + "a" for p in points if p < 0x10000 or charset != "ucs2"]
        cells = [text.encode(codec) for text in texts]
        assert decode(text_column(charset), cells).to_pylist() == converted(mysql97, charset, cells)
