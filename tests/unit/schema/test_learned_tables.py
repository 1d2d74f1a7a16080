"""What is learned of tables without a statement, and a model that is stored and restored."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import UNKNOWN_CHARSET, ColumnDefinition, TableDefinition
from engine.records import pack
from engine.schema.changes import SchemaChange, TableName
from engine.schema.model import SchemaModel
from tests.support.ddl import MARIADB_11, MYSQL_9, MYSQL_56, Followed, query, table_of

HERE = BinlogPosition("binlog.000001", 4)


def emptied(change: SchemaChange | None) -> list[str]:
    return [] if change is None else [str(name) for name in change.emptied]


def rewritten(change: SchemaChange | None) -> list[str]:
    return [] if change is None else [str(name) for name in change.rewritten]


def definition(table: str = "t", *names: str) -> TableDefinition:
    return TableDefinition("shop", table, tuple(ColumnDefinition(name, "int") for name in names))


def test_learn() -> None:
    model = SchemaModel("mysql")
    first = model.learn("server", HERE, replace(definition("t", "a", "b"), collation="latin1_swedish_ci"))
    assert first is not None and first.source == "server"
    assert (first.tables[0].version, first.tables[0].previous_names) == (1, None)
    assert model.learn("table map", HERE, definition("t", "a", "b")) is None
    second = model.learn("table map", HERE, definition("t", "b", "c"))
    assert second is not None
    assert (second.tables[0].version, second.tables[0].previous_names) == (2, ("b", None))
    assert second.tables[0].collation == "latin1_swedish_ci"


def test_what_a_catalog_cannot_show_is_not_forgotten() -> None:
    def members(listed: str) -> TableDefinition:
        return TableDefinition("shop", "t", (ColumnDefinition("e", f"enum({listed})", "utf8mb4"),))

    model = SchemaModel("mysql")
    assert model.learn("server", HERE, members("'a?','b'")) is not None
    assert model.learn("server", HERE, members("'a😀','b'")) is not None
    assert model.learn("server", HERE, members("'a?','b'")) is None
    with_collation = model.learn("server", HERE, replace(members("'a?','b'"), collation="utf8mb4_bin"))
    assert with_collation is not None and with_collation.tables[0].columns == members("'a😀','b'").columns
    assert model.find("shop", "t") == replace(members("'a😀','b'"), collation="utf8mb4_bin")
    assert model.learn("server", HERE, members("'a?','c'")) is not None


def test_what_is_learned_after_a_doubt_has_no_previous_names() -> None:
    model = SchemaModel("mysql")
    model.learn("server", HERE, definition("t", "a"))
    model.mark_unsure("shop", "t", "why", HERE)
    assert (model.find("shop", "t"), model.doubt("shop", "t")) == (None, "why")
    change = model.learn("server", HERE, definition("t", "a"))
    assert change is not None
    assert (change.tables[0].version, change.tables[0].previous_names) == (3, None)
    assert model.doubt("shop", "t") is None


def test_a_learned_table_is_altered() -> None:
    model = SchemaModel("mysql")
    model.learn("server", HERE, replace(definition("t", "a"), collation="latin1_bin"))
    model.execute(query("ALTER TABLE t ADD b CHAR"), MYSQL_9, HERE)
    found = model.find("shop", "t")
    assert found is not None and found.columns[1].collation == "latin1_bin"


def test_a_learned_table_without_its_character_set() -> None:
    model = SchemaModel("mysql")
    model.learn("server", HERE, definition("t", "a"))
    model.execute(query("ALTER TABLE t ADD b INT"), MYSQL_9, HERE)
    assert model.find("shop", "t")
    model.execute(query("ALTER TABLE t ADD c CHAR"), MYSQL_9, HERE)
    found = model.find("shop", "t")
    assert found is not None and found.columns[2].charset == UNKNOWN_CHARSET
    model.execute(query("ALTER TABLE t CONVERT TO CHARACTER SET latin1"), MYSQL_9, HERE)
    assert "character set" in (model.doubt("shop", "t") or "")


def test_learn_database() -> None:
    model = SchemaModel("mysql")
    assert model.learn_database("server", HERE, "shop", "latin1_bin") is not None
    assert model.learn_database("server", HERE, "shop", "latin1_bin") is None
    model.execute(query("CREATE TABLE t (a CHAR)"), MYSQL_9, HERE)
    found = model.find("shop", "t")
    assert found is not None and found.columns[0].collation == "latin1_bin"


STATEMENTS = [
    "CREATE DATABASE b CHARSET latin1",
    "CREATE TABLE t (a CHAR)",
    "ALTER TABLE t ADD n CHAR",
    "ALTER TABLE t FROBNICATE",
    "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY) CHARSET latin1",
    "CREATE TABLE b.u LIKE t",
    "RENAME TABLE t TO v, b.u TO t",
    "ALTER TABLE v CONVERT TO CHARACTER SET utf8mb4, ADD x TEXT",
    "DROP TABLE v",
    "DROP DATABASE b",
    "CREATE TABLE IF NOT EXISTS b.u (c CHAR)",
    "CREATE TABLE elsewhere.w (a INT)",
]


@given(st.lists(st.sampled_from(STATEMENTS), max_size=12), st.integers(0, 12))
def test_a_restored_model_continues_as_the_one_before(statements: list[str], at: int) -> None:
    followed, again = Followed(MARIADB_11), Followed(MARIADB_11)
    for statement in statements[:at]:
        followed.run(statement)
    again.model = SchemaModel("mariadb")
    again.model.restore([followed.model.state()])
    assert again.model.state() == followed.model.state()
    for statement in statements[at:]:
        one, other = followed.run(statement), again.run(statement)
        assert (one and (one.tables, one.databases, one.emptied, one.rewritten)) == (
            other and (other.tables, other.databases, other.emptied, other.rewritten)
        )


@given(st.lists(st.sampled_from(STATEMENTS), max_size=12))
def test_all_records_together_restore_the_model(statements: list[str]) -> None:
    followed = Followed(MARIADB_11)
    records = [followed.run("CREATE DATABASE shop2"), *(followed.run(statement) for statement in statements)]
    model = SchemaModel("mariadb")
    model.restore([record for record in records if record is not None])
    assert list(model.tables()) == list(followed.model.tables())


@given(st.lists(st.sampled_from(STATEMENTS), max_size=12))
def test_versions_count_by_one(statements: list[str]) -> None:
    followed = Followed(MARIADB_11)
    newest: dict[TableName, int] = {}
    for statement in statements:
        change = followed.run(statement)
        for table in change.tables if change else ():
            assert table.version == newest.get(table.name, 0) + 1
            newest[table.name] = table.version
            assert table.previous_names is None or len(table.previous_names) == len(table.columns or ())


CLAUSES = [clauses for clauses, *_ in table_of("ddl_alters.txt")]
VALUES = st.one_of(
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.text(alphabet="0123456789-:. ae'x").map(lambda text: "'" + text.replace("'", "''") + "'"),
    st.sampled_from(["b''", "x''", "0x41", "NULL", "-1", "1e999", "((((1))))"]),
)
TYPES = st.sampled_from(
    [
        *("int", "decimal(10,2)", "float", "double", "bit(4)", "char(3)", "varbinary(2)", "set('a')", "uuid"),
        *("date", "datetime(3)", "timestamp", "time(2)", "year"),
        *("double(5,2)", "int(5) zerofill", "decimal(5,1) zerofill"),
    ]
)


@given(
    st.lists(st.sampled_from(CLAUSES), min_size=1, max_size=4),
    st.sampled_from([MYSQL_9, MYSQL_56, MARIADB_11]),
)
def test_any_clauses_lead_to_columns_or_a_doubt(clauses: list[str], version: str) -> None:
    followed = Followed(version)
    followed.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10), c INT, d TEXT, e ENUM('x','y'))")
    change = followed.run("ALTER TABLE t " + ", ".join(clauses))
    for table in change.tables if change else ():
        assert (table.columns is None) or (table.doubt is None)


@given(TYPES, VALUES, st.sampled_from([MYSQL_9, MYSQL_56, MARIADB_11]))
def test_any_default_has_a_text(column_type: str, value: str, version: str) -> None:
    followed = Followed(version)
    followed.run(f"CREATE TABLE t (a {column_type} DEFAULT {value})")
    followed.run("CREATE TABLE u (a INT)")
    followed.run(f"ALTER TABLE u ADD b {column_type} NOT NULL DEFAULT {value}")
    assert followed.model.find("shop", "t") or followed.model.doubt("shop", "t")


def test_the_record_of_a_statement_has_its_beginning() -> None:
    followed = Followed()
    change = followed.changed("CREATE TABLE t (a INT COMMENT '" + "x" * 2000 + "')")
    assert change.statement is not None and len(change.statement) == 1000
    assert (change.source, change.position) == ("statement", followed.position)
    assert pack(change)
