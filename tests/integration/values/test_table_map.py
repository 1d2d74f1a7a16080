"""Table maps: every type with all its metadata, and whether a server's catalog fits them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog import event_types as t
from engine.binlog.definition_fit import declared_type, mismatch
from engine.binlog.field_types import FieldType
from engine.binlog.field_types import FieldType as F
from engine.binlog.files import read_events
from engine.binlog.format_description import FormatDescription
from engine.binlog.table_definition import ColumnDefinition
from engine.binlog.table_map import CatalogMismatch, TableMap
from engine.decode.arrow.codec import Options
from engine.decode.tables.column_decoder import ColumnDecoders
from engine.decode.tables.table_decoder import make_decoder
from engine.errors import EventError
from engine.net.client.connection import Connection
from engine.output.reader import merged_schema
from engine.schema.from_table_map import definition_of as definition_of_table_map
from tests.servers import FLAVORS, NO_ROW_METADATA, Server, UnavailableError, get_server
from tests.support.binlog_builder import PLAIN, make_event, resized, with_post_header
from tests.support.definitions import definition_of
from tests.support.event_workload import create_all_types

MARIADB = replace(PLAIN, server_version="11.8.6-MariaDB-log")


def table_map_event(
    types: Sequence[int], metadata: bytes = b"", optional: bytes = b"", table_id: bytes = b"\x07\0\0\0\0\0"
) -> bytes:
    nulls = bytes((len(types) + 7) // 8)
    body = table_id + b"\x01\0" + b"\x04shop\0" + b"\x02t1\0" + bytes([len(types), *types])
    return make_event(t.TABLE_MAP_EVENT, body + bytes([len(metadata)]) + metadata + nulls + optional)


def field(number: int, content: bytes) -> bytes:
    return bytes([number, len(content)]) + content


def test_plain() -> None:
    table_map = TableMap.parse(table_map_event([F.LONG, F.VARCHAR], b"\x2c\x01"), PLAIN)
    assert (table_map.table_id, table_map.flags) == (7, 1)
    assert (table_map.database, table_map.table) == ("shop", "t1")
    assert (table_map.types, table_map.metadata) == ((F.LONG, F.VARCHAR), (0, 300))
    assert table_map.nullable == (False, False)
    assert table_map.needs_catalog
    assert [column.name for column in table_map.columns(None)] == ["@1", "@2"]


def test_table_ids_of_four_bytes() -> None:
    fmt = with_post_header(t.TABLE_MAP_EVENT, 6)
    assert TableMap.parse(table_map_event([F.LONG], table_id=b"\x07\0\0\0"), fmt).table_id == 7


def test_before_metadata_was_written() -> None:
    """MySQL 5.1.17 ends the event after the types."""
    event = table_map_event([F.LONG, F.STRING])
    table_map = TableMap.parse(resized(event[:-2]), PLAIN)
    assert (table_map.types, table_map.metadata, table_map.nullable) == ((3, 254), (0, 0), (True, True))


@pytest.mark.parametrize(
    ("packed", "real_type", "length"),
    [
        (b"\xfe\x0a", F.STRING, 10),
        (b"\xfe\xff", F.STRING, 255),
        # CHAR(255) of utf8mb4: 1020 bytes.
        (b"\xce\xfc", F.STRING, 1020),
        (b"\xee\x00", F.STRING, 256),
        (b"\xde\x01", F.STRING, 513),
        (b"\xf7\x02", F.ENUM, 2),
        (b"\xf8\x08", F.SET, 8),
        (b"\xfd\x14", F.VAR_STRING, 20),
    ],
)
def test_real_types(packed: bytes, real_type: FieldType, length: int) -> None:
    table_map = TableMap.parse(table_map_event([F.STRING], packed), PLAIN)
    assert (table_map.types, table_map.metadata) == ((real_type,), (length,))


def test_impossible_real_type() -> None:
    with pytest.raises(EventError, match="column type 254 cannot encode type 51"):
        TableMap.parse(table_map_event([F.STRING], b"\x03\x0a"), PLAIN)


def test_unknown_column_type() -> None:
    with pytest.raises(EventError, match="column type 200 is unknown"):
        TableMap.parse(table_map_event([200]), PLAIN)


TYPES = [F.LONG, F.VARCHAR, F.YEAR, F.STRING, F.BLOB, F.STRING, F.GEOMETRY, F.FLOAT, F.VARCHAR]
METADATA = b"\x0a\x00" + b"\xf7\x01" + b"\x02" + b"\xf8\x01" + b"\x04" + b"\x04" + b"\x14\x00"
"""INT, VARCHAR(10), YEAR, ENUM, BLOB, SET, GEOMETRY, FLOAT, VARCHAR(20)."""


def parse_optional(optional: bytes, fmt: FormatDescription = PLAIN) -> TableMap:
    return TableMap.parse(table_map_event(TYPES, METADATA, optional), fmt)


def test_signedness_counts_numeric_columns() -> None:
    table_map = parse_optional(field(1, b"\xa0"))
    unsigned = dict(zip(TYPES, table_map.optional.unsigned, strict=True))
    assert (unsigned[F.LONG], unsigned[F.YEAR], unsigned[F.FLOAT]) == (True, None, True)
    assert [value for value in table_map.optional.unsigned if value is not None] == [True, True]


def test_years_have_no_signs_before_mysql_8_0_21() -> None:
    for version, bits in (("8.0.20", b"\xc0"), ("8.0.21-log", b"\xa0"), ("11.8.6-MariaDB", b"\xa0")):
        table_map = parse_optional(field(1, bits), replace(PLAIN, server_version=version))
        assert [value for value in table_map.optional.unsigned if value is not None] == [True, True], version


def test_collations_count_character_columns() -> None:
    absent = None
    each = parse_optional(field(3, b"\x08\x3f\xfc\xff\x00"))
    assert each.optional.collations == (absent, 8, absent, absent, 63, absent, absent, absent, 255)
    default = parse_optional(field(2, b"\x2d" + b"\x01\x3f"))
    assert default.optional.collations == (absent, 45, absent, absent, 63, absent, absent, absent, 45)
    members = parse_optional(field(11, b"\x08\x21"))
    assert members.optional.collations == (absent, absent, absent, 8, absent, 33, absent, absent, absent)
    member_default = parse_optional(field(10, b"\x08"))
    assert member_default.optional.collations[3] == member_default.optional.collations[5] == 8


def test_mariadb_counts_geometries_as_character_columns() -> None:
    table_map = parse_optional(field(3, b"\x08\x3f\x3f\x2d"), MARIADB)
    assert table_map.optional.collations[1:9] == (8, None, None, 63, None, 63, None, 45)


def test_names_members_and_the_rest() -> None:
    names = b"".join(
        bytes([len(name)]) + name for name in (b"a", b"\xc3\xa4", b"c", b"d", b"e", b"f", b"g", b"h", b"i")
    )
    optional = b"".join(
        (
            field(4, names),
            field(6, b"\x02\x01x\x01\xe4"),
            field(5, b"\x01\x02\xc3\xbc"),
            field(11, b"\x08\x2d"),
            field(7, b"\x01"),
            field(12, b"\xef\x80"),
            field(99, b"from the future"),
            field(9, b"\x08\x05\x00\x00"),
        )
    )
    table_map = parse_optional(optional)
    columns = {column.name: column for column in table_map.columns(None)}
    assert list(columns) == ["a", "ä", "c", "d", "e", "f", "g", "h", "i"]
    assert columns["d"].members == ("x", "ä")
    assert columns["f"].members == ("ü",)
    assert columns["g"].geometry_type == 1
    assert [column.visible for column in columns.values()] == [True] * 3 + [False] + [True] * 5
    assert table_map.optional.primary_key == ((8, 5), (0, 0))
    assert not table_map.needs_catalog
    shown = table_map.to_json()
    assert shown["columns"][3]["members"] == ["x", "ä"]
    assert shown["primary_key"] == [[8, 5], [0, 0]]
    assert [column["visible"] for column in shown["columns"]] == [True] * 3 + [False] + [True] * 5


def test_visibility_that_the_binlog_does_not_say() -> None:
    table_map = parse_optional(field(1, b"\xa0"))
    assert [column.visible for column in table_map.columns(None)] == [None] * len(TYPES)
    assert all("visible" not in column for column in table_map.to_json()["columns"])


def test_dimensions_of_vectors() -> None:
    dimensions = field(13, b"\x03\xfc\x00\x04")
    table_map = TableMap.parse(table_map_event([F.VECTOR, F.LONG, F.VECTOR], b"\x04\x04", dimensions), PLAIN)
    assert [column.dimension for column in table_map.columns(None)] == [3, None, 1024]


@pytest.mark.parametrize(
    ("optional", "reason"),
    [
        (field(1, b"\x80\x00"), "metadata field 1 is 1 bytes too long"),
        (field(1, b""), "bytes expected"),
        (field(2, b"\x08\x03\x08"), "there is no character column 3"),
        (field(3, b"\x08\x08"), "bytes expected"),
        (field(4, b"\x01a"), "bytes expected"),
        (field(6, b"\xfd\xff\xff\xff"), "16777215 members in 0 bytes"),
        (field(8, b"\x09"), "the primary key has a column 9, which the table lacks"),
        (b"\x04\xfe" + b"\xff" * 8, "bytes expected"),
    ],
)
def test_optional_metadata_that_does_not_fit(optional: bytes, reason: str) -> None:
    with pytest.raises(EventError, match=reason):
        parse_optional(optional)


@given(st.data())
def test_damaged_table_maps(data: st.DataObject) -> None:
    event = bytearray(table_map_event(TYPES, METADATA, field(1, b"\xa0") + field(3, b"\x08\x3f\xfc\xff\x00")))
    for _ in range(data.draw(st.integers(0, 4))):
        event[data.draw(st.integers(19, len(event) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(19, len(event)))
    try:
        table_map = TableMap.parse(resized(bytes(event[:cut])), PLAIN)
    except EventError:
        return
    assert len(table_map.columns(None)) == len(table_map.types) == len(table_map.metadata)


@pytest.mark.parametrize(
    ("code", "length", "collation", "hides"),
    [
        (F.STRING, 16, 63, True),
        (F.STRING, 4, None, True),
        (F.STRING, 16, 45, False),
        (F.STRING, 20, 63, False),
        (F.VARCHAR, 8, 63, True),
        (F.VARCHAR, 8, 45, False),
        (F.VARCHAR, 9, 63, False),
        (F.DATETIME, 0, None, True),
        (F.DATETIME2, 3, None, False),
        (F.LONG, 0, None, False),
    ],
)
def test_types_that_the_binlog_may_hide(
    code: FieldType, length: int, collation: int | None, hides: bool
) -> None:
    """As MariaDB writes UUID, INET4, INET6, VECTOR and times of before MySQL 5.6, among others."""
    plain = TableMap.parse(table_map_event([F.LONG]), PLAIN)
    optional = replace(plain.optional, collations=(collation,))
    table_map = replace(plain, types=(code,), metadata=(length,), optional=optional)
    assert table_map.hides_types == hides


def info(column_type: str, name: str = "c", **values: Any) -> ColumnDefinition:
    return ColumnDefinition(name, column_type, **values)


@pytest.mark.parametrize(
    ("type_code", "metadata", "column"),
    [
        (F.TINY, 0, info("smallint")),
        (F.LONG, 0, info("bigint")),
        (F.NEWDECIMAL, 10 | 2 << 8, info("decimal(10,3)")),
        (F.NEWDECIMAL, 10 | 2 << 8, info("decimal(11,2)")),
        (F.BIT, 5 | 1 << 8, info("bit(14)")),
        (F.DATETIME2, 3, info("datetime(6)")),
        (F.DATETIME2, 3, info("datetime")),
        (F.VARCHAR, 80, info("varchar(21)")),
        (F.VARCHAR, 80, info("varbinary(20)")),
        (F.STRING, 10, info("binary(20)")),
        (F.STRING, 16, info("inet4")),
        (F.BLOB, 2, info("mediumtext")),
        (F.BLOB, 2, info("json")),
        (F.ENUM, 1, info("enum(" + ",".join(["'x'"] * 300) + ")")),
        (F.SET, 2, info("set('x')")),
        (F.VARCHAR, 16, info("vector(5)")),
        (F.LONG, 0, info("text")),
    ],
)
def test_columns_that_do_not_fit(type_code: FieldType, metadata: int, column: ColumnDefinition) -> None:
    reason = mismatch(type_code, metadata, column)
    assert reason is not None
    assert f"{column.column_type} in the catalog" in reason


def test_types_of_plugins_are_taken_as_they_come() -> None:
    assert mismatch(F.STRING, 20, info("moneytype")) is None
    assert declared_type(F.STRING, info("moneytype")) == "moneytype"
    assert declared_type(F.STRING, info("uuid")) == "uuid"
    assert declared_type(F.JSON, info("json")) is None
    assert declared_type(F.BLOB, info("json")) == "json"
    assert declared_type(F.LONG, info("int")) is None


def test_columns_by_the_catalog() -> None:
    event = table_map_event([F.LONG, F.STRING], b"\xf7\x01")
    catalog = (
        info("int unsigned", name="number", nullable=False),
        info("enum('x','y')", name="kind", charset="latin1", visible=False, nullable=False),
    )
    table_map = TableMap.parse(event, PLAIN)
    number, kind = table_map.columns(catalog)
    assert (number.name, number.unsigned, number.type_code) == ("number", True, F.LONG)
    assert (kind.name, kind.members, kind.charset, kind.visible) == ("kind", ("x", "y"), "latin1", False)
    with pytest.raises(
        CatalogMismatch, match=r"shop\.t1 cannot be named.*1 columns in the catalog, 2 in the binlog"
    ):
        table_map.columns(catalog[:1])
    with pytest.raises(CatalogMismatch, match="column kind: text in the catalog, enum\\(1\\) in the binlog"):
        table_map.columns((catalog[0], info("text", name="kind")))


def test_members_that_become_known_are_another_column() -> None:
    """Their names become known with them, so that no reader puts numbers and members into one column."""
    types, metadata = [F.LONG, F.STRING, F.STRING], b"\xf7\x01" + b"\xf8\x08"
    members = field(6, b"\x01\x012") + field(5, b"\x01\x012")
    named = field(4, b"\x02id\x04kind\x05flags") + members
    schemas = [
        make_decoder(
            TableMap.parse(table_map_event(types, metadata, optional), PLAIN), None, ColumnDecoders(Options())
        ).schema
        for optional in (b"", named)
    ]
    merged = merged_schema(schemas)
    assert {name: merged.field(name).type for name in ("kind", "flags", "@2", "@3")} == {
        "kind": pa.string(),
        "flags": pa.string(),
        "@2": pa.int16(),
        "@3": pa.decimal128(20, 0),
    }


def test_members_with_characters_that_the_catalog_cannot_show() -> None:
    true, other = "a😀".encode(), "a🎉".encode()
    listed = bytes([2, len(true)]) + true + bytes([len(other)]) + other
    collation = field(10, b"\xfc\xff\x00")
    event = table_map_event([F.STRING], b"\xf7\x01", collation + field(6, listed))
    table_map = TableMap.parse(event, PLAIN)
    for known in ("enum('a?','a?')", "enum('a😀','a🎉')"):
        assert table_map.mismatch((info(known, charset="utf8mb4", nullable=False),)) is None
        assert table_map.columns((info(known, charset="utf8mb4", nullable=False),))[0].members == (
            "a😀",
            "a🎉",
        )
    for altered in ("enum('a😀','a😀')", "enum('a?','b')", "enum('a?')"):
        assert "in the binlog" in (
            table_map.mismatch((info(altered, charset="utf8mb4", nullable=False),)) or ""
        )


def test_the_binlog_wins_over_the_catalog() -> None:
    names = field(4, b"\x03old\x03two")
    event = table_map_event([F.LONG, F.LONG], b"", field(1, b"\x80") + names)
    table_map = TableMap.parse(event, PLAIN)
    renamed = (info("int unsigned", name="new"), info("int", name="two"))
    assert table_map.mismatch(renamed) == "column new: named old in the binlog"
    assert [column.name for column in table_map.columns(renamed)] == ["old", "two"]
    signed = (info("int", name="old"), info("int", name="two"))
    assert "the other signedness" in (table_map.mismatch(signed) or "")


ADDED_COLLATIONS = field(4, b"\x04text\x04kind") + field(3, b"\xfc\x05\x04") + field(11, b"\xfc\x05\x04")
"""Two columns of collation 1029."""


def test_the_character_set_of_an_added_collation_is_the_catalogs() -> None:
    members = field(6, b"\x02\x01\xe4\x01\xed")
    event = table_map_event([F.VARCHAR, F.STRING], b"\x14\0" + b"\xf7\x01", ADDED_COLLATIONS + members)
    table_map = TableMap.parse(event, PLAIN)
    assert (table_map.lacks_names, table_map.needs_catalog) == (False, True)
    assert table_map.optional.added_collations == {1029}
    text, kind = table_map.columns(
        (
            info("varchar(20)", name="text", charset="cp1251", nullable=False),
            info("enum('д','н')", name="kind", charset="cp1251", nullable=False),
        )
    )
    assert (text.charset, kind.charset, kind.members) == ("cp1251", "cp1251", ("д", "н"))
    with pytest.raises(CatalogMismatch, match=r"cannot be read as text \(they have an added collation\)"):
        table_map.columns((info("varchar(20)", name="text", charset="cp1251"),))


def test_a_hash_of_a_unique_key_is_hidden() -> None:
    names = field(4, b"\x04text\x0dDB_ROW_HASH_1")
    table_map = TableMap.parse(table_map_event([F.LONG, F.LONGLONG], b"", names), MARIADB)
    text, hashed = definition_of_table_map(table_map).columns
    assert (text.visible, text.generated) == (True, None)
    assert (hashed.visible, hashed.generated) == (False, "virtual")


def test_a_collation_may_be_added_on_one_flavor_and_built_in_on_the_other() -> None:
    without_padding = field(4, b"\x04text") + field(3, b"\xfc\x08\x04")
    event = table_map_event([F.VARCHAR], b"\x14\0", without_padding)
    assert TableMap.parse(event, PLAIN).needs_catalog
    of_mariadb = TableMap.parse(event, MARIADB)
    assert not of_mariadb.needs_catalog
    assert [column.collation for column in of_mariadb.columns(None)] == [1032]


def test_mariadb_counts_the_decimals_of_mysql_4_among_the_numbers() -> None:
    signedness = field(1, b"\x40")
    table_map = TableMap.parse(table_map_event([F.DECIMAL, F.LONG], b"", signedness), MARIADB)
    assert table_map.optional.unsigned == (False, True)


@pytest.fixture(scope="module", params=FLAVORS)
def full_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    options = {} if request.param in NO_ROW_METADATA else {"binlog_row_metadata": "FULL"}
    try:
        server = get_server(request.param, options)
    except UnavailableError as error:
        pytest.skip(str(error))
    with server:
        server.execute("CREATE DATABASE maps", "USE maps")
        yield server


def written_table_map(path: Path, table: str) -> TableMap:
    events = [data for _, data in read_events(path)]
    fmt = FormatDescription.parse(events[0])
    maps = [TableMap.parse(data, fmt) for data in events if data[4] == t.TABLE_MAP_EVENT]
    return next(table_map for table_map in maps if table_map.table == table)


@pytest.mark.server
def test_catalogs_of_real_servers_fit(full_server: Server) -> None:
    create_all_types(full_server, "all_types")
    full_server.execute("INSERT INTO all_types (ti) VALUES (1)")
    table_map = written_table_map(full_server.flush_binlog(), "all_types")
    connection = Connection.open(full_server.host, full_server.port, full_server.user, full_server.password)
    with connection:
        catalog = definition_of(connection, "maps", "all_types").columns
    assert table_map.mismatch(catalog) is None
    named = {column.name: column for column in table_map.columns(catalog)}
    assert list(named) == [column.name for column in catalog]
    assert (named["big"].unsigned, named["ti"].unsigned) == (True, False)
    assert named["e"].members == ("a", "b", "ä")
    assert named["eu"].members == ("q", "ß")
    assert named["s"].members == ("x", "y", "ü")
    if full_server.installation.flavor.is_mariadb:
        assert {name: named[name].declared for name in ("u", "i6", "i4", "j")} == {
            "u": "uuid",
            "i6": "inet6",
            "i4": "inet4",
            "j": named["j"].declared,
        }
    if full_server.flavor in NO_ROW_METADATA:
        return
    # Full metadata says the same without the catalog.
    alone = {column.name: column for column in table_map.columns(None)}
    for name, column in named.items():
        assert bool(alone[name].unsigned) == column.unsigned, name
        assert alone[name].members == column.members, name
        assert alone[name].nullable == column.nullable, name
    collations = {column.name: column.collation for column in catalog}
    ids = dict(
        full_server.query("SELECT COLLATION_NAME, ID FROM information_schema.COLLATIONS WHERE ID IS NOT NULL")
    )
    for name, collation in collations.items():
        if collation in ids:
            assert alone[name].collation == ids[collation], name
    assert table_map.optional.primary_key == ((0, 0),)


@pytest.mark.server
def test_prefixes_in_primary_keys(full_server: Server) -> None:
    if full_server.flavor in NO_ROW_METADATA:
        pytest.skip("this server writes no optional metadata")
    full_server.execute("CREATE TABLE keyed (a INT, b VARCHAR(40), c INT, PRIMARY KEY (c, b(10)))")
    full_server.execute("INSERT INTO keyed VALUES (1, 'x', 2)")
    table_map = written_table_map(full_server.flush_binlog(), "keyed")
    assert table_map.optional.primary_key == ((2, 0), (1, 10))


@pytest.mark.server
def test_an_altered_table_is_noticed(full_server: Server) -> None:
    full_server.execute("CREATE TABLE altered (a INT, b VARCHAR(40))", "INSERT INTO altered VALUES (1, 'x')")
    table_map = written_table_map(full_server.flush_binlog(), "altered")
    full_server.execute("ALTER TABLE altered MODIFY b VARCHAR(50)")
    connection = Connection.open(full_server.host, full_server.port, full_server.user, full_server.password)
    with connection:
        catalog = definition_of(connection, "maps", "altered").columns
    assert (table_map.mismatch(catalog) or "").startswith("column b: varchar(50) in the catalog, varchar(")


def test_metadata_of_every_type_is_counted() -> None:
    """A wrong length for one type would shift the metadata of all types after it."""
    sizes = {F.FLOAT: 1, F.VARCHAR: 2, F.BIT: 2, F.NEWDECIMAL: 2, F.TIME2: 1, F.JSON: 1, F.VECTOR: 1}
    types = [F.TINY, *sizes, F.DATE]
    metadata = b"".join(struct.pack("<H", 0x0102)[:size] for size in sizes.values())
    table_map = TableMap.parse(table_map_event(types, metadata), PLAIN)
    assert table_map.metadata == (0, *(0x0102 if size == 2 else 0x02 for size in sizes.values()), 0)


def test_own_columns_hide_no_metadata_columns() -> None:
    """Not even for Spark, which ignores case; and names stay apart."""
    given = ["_SEQ", "_gtid_", "_table", "_Database", "seq", "_seqs_"]
    content = b"".join(bytes([len(name)]) + name.encode() for name in given)
    table_map = TableMap.parse(table_map_event([F.LONG] * len(given), optional=field(4, content)), PLAIN)
    decoder = make_decoder(table_map, None, ColumnDecoders(Options()))
    assert list(decoder.names) == ["_SEQ_", "_gtid__", "_table_", "_Database_", "seq", "_seqs_"]
