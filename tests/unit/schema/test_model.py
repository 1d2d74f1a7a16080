"""What statements do to the known tables and to rows; what is learned, stored and restored."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import UNKNOWN_CHARSET, ColumnDefinition, TableDefinition
from engine.records import pack
from engine.schema.changes import SchemaChange, TableName
from engine.schema.model import SchemaModel
from tests.support.ddl import MARIADB_11, MYSQL_9, MYSQL_56, Followed, query, table_of

HERE = BinlogPosition("binlog.000001", 4)


@pytest.fixture
def shop() -> Followed:
    followed = Followed()
    followed.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    followed.run("CREATE TABLE u (x INT)")
    return followed


def emptied(change: SchemaChange | None) -> list[str]:
    return [] if change is None else [str(name) for name in change.emptied]


def rewritten(change: SchemaChange | None) -> list[str]:
    return [] if change is None else [str(name) for name in change.rewritten]


def versions(change: SchemaChange) -> dict[str, int]:
    return {str(table.name): table.version for table in change.tables}


def definition(table: str = "t", *names: str) -> TableDefinition:
    return TableDefinition("shop", table, tuple(ColumnDefinition(name, "int") for name in names))


# Rows that a statement removes


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("TRUNCATE t", ["shop.t"]),
        ("TRUNCATE TABLE other.t", ["other.t"]),
        ("DROP TABLE t, unknown", ["shop.t", "shop.unknown"]),
        ("DROP TABLE IF EXISTS t", ["shop.t"]),
        ("DROP DATABASE shop", ["shop."]),
        ("CREATE OR REPLACE TABLE t (b INT)", ["shop.t"]),
        ("CREATE OR REPLACE TABLE unknown (b INT)", ["shop.unknown"]),
        ("CREATE TABLE t (b INT)", ["shop.t"]),
        ("CREATE TABLE fresh (b INT)", []),
        ("DROP TEMPORARY TABLE t", []),
        ("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`", []),
        ("RENAME TABLE t TO v", []),
        ("RENAME TABLE t TO u", ["shop.u"]),
    ],
)
def test_emptied(shop, statement, tables):
    assert emptied(shop.run(statement)) == tables


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", ["shop.t", "shop.u"]),
        ("ALTER TABLE unknown DROP PARTITION p", ["shop.unknown"]),
        ("ALTER TABLE t REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (1))", []),
        ("ALTER TABLE t ADD PARTITION (PARTITION q VALUES LESS THAN (1))", []),
        ("ALTER IGNORE TABLE t ADD UNIQUE (a)", ["shop.t"]),
        ("CREATE TABLE v SELECT * FROM t", ["shop.v"]),
        ("ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (5)", ["shop.t"]),
        ("ALTER TABLE t DROP SYSTEM VERSIONING", ["shop.t"]),
    ],
)
def test_rewritten(shop, statement, tables):
    assert rewritten(shop.run(statement)) == tables


def test_a_partition_becomes_a_table(shop):
    change = shop.changed("ALTER TABLE t CONVERT PARTITION p TO TABLE archive")
    assert rewritten(change) == ["shop.t", "shop.archive"]
    assert shop.columns("archive") == shop.columns("t")


def test_a_table_becomes_a_partition(shop):
    change = shop.changed("ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (5)")
    assert emptied(change) == ["shop.u"]
    assert shop.model.find("shop", "u") is None


# Names


def test_a_rename(shop):
    change = shop.changed("RENAME TABLE t TO v")
    old, new = change.tables
    assert (str(old.name), old.columns, old.version) == ("shop.t", None, 2)
    assert (str(new.name), new.renamed_from, new.previous_names) == (
        "shop.v",
        TableName("shop", "t"),
        ("id", "a"),
    )
    assert (shop.model.find("shop", "t"), shop.names("v")) == (None, "id a")


def test_a_swap(shop):
    change = shop.changed("RENAME TABLE t TO tmp, u TO t, tmp TO u")
    assert {str(table.name): str(table.renamed_from) for table in change.tables} == {
        "shop.t": "shop.u",
        "shop.u": "shop.t",
    }
    assert (shop.names("t"), shop.names("u")) == ("x", "id a")
    assert not change.changes_rows


def test_gh_ost_and_pt_online_schema_change(shop):
    shop.run("CREATE TABLE _t_gho LIKE t")
    shop.run("ALTER TABLE _t_gho CHANGE a b INT, ADD c INT")
    change = shop.changed("RENAME TABLE `shop`.`t` TO `shop`.`_t_del`, `shop`.`_t_gho` TO `shop`.`t`")
    assert (shop.names("t"), shop.names("_t_del")) == ("id b c", "id a")
    assert versions(change) == {"shop.t": 2, "shop._t_del": 1, "shop._t_gho": 3}
    assert emptied(shop.run("DROP TABLE IF EXISTS `shop`.`_t_del`")) == ["shop._t_del"]


def test_a_rename_of_a_table_that_is_not_known(shop):
    change = shop.changed("RENAME TABLE unknown TO v")
    assert [(str(table.name), str(table.renamed_from)) for table in change.tables] == [
        ("shop.v", "shop.unknown")
    ]
    assert "unknown" in (shop.model.doubt("shop", "v") or "")


def test_alter_table_renames_with_its_other_clauses(shop):
    change = shop.changed("ALTER TABLE t RENAME TO v, CHANGE a b INT, ADD c INT NOT NULL")
    new = next(table for table in change.tables if table.name.table == "v")
    assert (new.previous_names, new.filled) == (("id", "a", None), (None, None, "0"))
    assert new.renamed_from == TableName("shop", "t")
    assert shop.names("v") == "id b c"


def test_table_names_in_lower_case():
    followed = Followed(MYSQL_9, lower_case_table_names=1)
    followed.run("CREATE TABLE Orders (Id INT)")
    assert [str(table.name) for table in followed.changed("ALTER TABLE ORDERS ADD b INT").tables] == [
        "shop.orders"
    ]
    assert followed.names("orders") == "Id b"


def test_table_names_compared_in_lower_case():
    followed = Followed(MYSQL_9, lower_case_table_names=2)
    followed.run("CREATE TABLE Orders (a INT)")
    followed.run("ALTER TABLE ORDERS ADD b INT")
    assert followed.names("orders") == "a b"
    assert [definition.table for definition in followed.model.tables()] == ["Orders"]


def test_table_names_as_they_are():
    followed = Followed()
    followed.run("CREATE TABLE Orders (a INT)")
    assert followed.run("ALTER TABLE orders ADD b INT") is None
    assert followed.names("Orders") == "a"


def test_column_names_have_no_case(shop):
    shop.run("ALTER TABLE t CHANGE ID Key_Id INT, DROP A")
    assert shop.names() == "Key_Id"


# What exists


def test_if_not_exists_of_a_known_table_changes_nothing(shop):
    assert shop.run("CREATE TABLE IF NOT EXISTS t (b INT)") is None
    assert shop.names() == "id a"


def test_if_not_exists_in_a_database_all_of_whose_tables_are_known(shop):
    shop.run("CREATE TABLE IF NOT EXISTS v (b INT)")
    assert shop.names("v") == "b"


def test_if_not_exists_of_a_table_that_may_exist(shop):
    shop.run("CREATE TABLE IF NOT EXISTS elsewhere.v (b INT)")
    assert shop.model.find("elsewhere", "v") is None
    assert "IF NOT EXISTS" in (shop.model.doubt("elsewhere", "v") or "")


def test_if_not_exists_of_a_dropped_table(shop):
    shop.run("CREATE TABLE elsewhere.v (a INT)")
    shop.run("DROP TABLE elsewhere.v")
    change = shop.changed("CREATE TABLE IF NOT EXISTS elsewhere.v (b INT)")
    assert shop.names("v", "elsewhere") == "b"
    assert versions(change) == {"elsewhere.v": 3}


def test_drop_database(shop):
    change = shop.changed("DROP DATABASE shop")
    assert versions(change) == {"shop.t": 2, "shop.u": 2}
    assert list(shop.model.tables()) == []
    shop.run("CREATE DATABASE IF NOT EXISTS shop CHARSET latin1")
    shop.run("CREATE TABLE IF NOT EXISTS t (a CHAR)")
    assert shop.columns()[0].charset == "latin1"


def test_if_not_exists_of_a_known_database_changes_nothing(shop):
    assert shop.run("CREATE DATABASE IF NOT EXISTS shop CHARSET latin1") is None


def test_like(shop):
    shop.run("CREATE TABLE v LIKE t")
    shop.run("CREATE TABLE w LIKE unknown")
    assert shop.columns("v") == shop.columns("t")
    assert "unknown" in (shop.model.doubt("shop", "w") or "")


def test_temporary_tables_are_not_tables(shop):
    assert shop.run("CREATE TEMPORARY TABLE v (a INT)") is None
    assert shop.run("DROP TEMPORARY TABLE v") is None
    assert shop.model.find("shop", "v") is None


def test_a_temporary_table_of_the_same_name_makes_unsure(shop):
    shop.run("CREATE TEMPORARY TABLE t (b INT)")
    assert shop.names() == "id a"
    change = shop.changed("ALTER TABLE t ADD c INT")
    assert "temporary" in (shop.model.doubt("shop", "t") or "")
    assert rewritten(change) == ["shop.t"]


# What is not certain


def test_a_statement_that_is_not_understood_makes_its_tables_unsure(shop):
    change = shop.changed("ALTER TABLE t FROBNICATE a")
    assert "not understood" in (shop.model.doubt("shop", "t") or "")
    assert (shop.names("u"), rewritten(change)) == ("x", ["shop.t"])


def test_a_statement_that_is_not_understood_and_names_no_known_table(shop):
    change = shop.changed("ALTER TABLE elsewhere.v FROBNICATE a")
    assert (change.tables, change.changes_rows) == ((), False)
    shop.run("CREATE TABLE IF NOT EXISTS v (a INT)")
    assert shop.model.doubt("shop", "v"), "it may have made the table v"


def test_a_statement_that_cannot_be_split_concerns_names_that_are_not_words():
    followed = Followed()
    for name in ("t", "u", "my-table"):
        followed.run(f"CREATE TABLE `{name}` (a INT)")
    followed.run("ALTER TABLE u COMMENT 'x, DROP a")
    unsure = [name for name in ("t", "u", "my-table") if followed.model.doubt("shop", name)]
    assert unsure == ["u", "my-table"]


def test_a_column_that_the_definition_lacks(shop):
    shop.run("ALTER TABLE t DROP unheard_of")
    assert "unheard_of" in (shop.model.doubt("shop", "t") or "")


def test_alter_of_an_unknown_table_changes_nothing(shop):
    assert shop.run("ALTER TABLE unknown ADD c INT") is None


def test_alter_of_an_unsure_table_keeps_it_unsure(shop):
    shop.model.mark_unsure("shop", "t", "it looks different", shop.position)
    assert shop.run("ALTER TABLE t ADD INDEX (a)") is None
    assert rewritten(shop.run("ALTER TABLE t ADD c INT NOT NULL")) == ["shop.t"]
    assert shop.model.doubt("shop", "t") == "it looks different"


def test_a_failed_statement(shop):
    assert emptied(shop.run("DROP TABLE t, unknown", error=1051)) == ["shop.t", "shop.unknown"]
    shop.run("ALTER TABLE u ADD c INT", error=1317)
    assert "error 1317" in (shop.model.doubt("shop", "u") or "")


def test_both_parts_of_an_alter_in_two_parts():
    followed = Followed(MARIADB_11)
    followed.run("CREATE TABLE t (a INT)")
    assert followed.run("ALTER TABLE t ADD b INT", gtid_flags_extra=2) is None
    assert followed.run("ALTER TABLE t ADD b INT", gtid_flags_extra=8) is None
    followed.run("ALTER TABLE t ADD b INT", gtid_flags_extra=4)
    assert followed.names() == "a b"


def test_set_statement_for():
    followed = Followed(MARIADB_11)
    followed.run("SET STATEMENT max_statement_time=1 FOR CREATE TABLE t (a INT)")
    assert followed.names() == "a"


def test_an_alter_of_a_table_with_hashes_of_unique_keys():
    followed = Followed(MARIADB_11)
    followed.run("CREATE TABLE t (a TEXT UNIQUE, b VARCHAR(800), UNIQUE (b)) WITH SYSTEM VERSIONING")
    assert followed.names() == "a b row_start row_end DB_ROW_HASH_1 DB_ROW_HASH_2"
    followed.run("ALTER TABLE t RENAME TO v")
    assert followed.model.find("shop", "v")
    followed.run("ALTER TABLE v ADD c INT")
    assert followed.names("v") == "a b c row_start row_end DB_ROW_HASH_1 DB_ROW_HASH_2"


def test_the_declared_end_of_a_row_version_is_part_of_the_primary_key():
    followed = Followed(MARIADB_11)
    followed.run(
        "CREATE TABLE t (id INT PRIMARY KEY, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START,"
        " f TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, f)) WITH SYSTEM VERSIONING"
    )
    followed.run("ALTER TABLE t ADD n INT, DROP PRIMARY KEY, ADD PRIMARY KEY (n)")
    assert [column.primary_key for column in followed.columns()] == [None, None, 2, 1]


def test_implicit_timestamps():
    followed = Followed(MYSQL_56)
    followed.run("CREATE TABLE t (a TIMESTAMP, b TIMESTAMP, c TIMESTAMP NULL)")
    followed.run("ALTER TABLE t ADD d TIMESTAMP")
    followed.run("CREATE TABLE u (a INT)")
    followed.run("ALTER TABLE u ADD b TIMESTAMP")
    zero = "0000-00-00 00:00:00"
    assert [(column.nullable, column.default, column.computed_default) for column in followed.columns()] == [
        (False, None, True),
        (False, zero, False),
        (True, None, False),
        (False, zero, False),
    ]
    assert followed.columns("u")[1].computed_default


# Learning and restoring


def test_learn():
    model = SchemaModel("mysql")
    first = model.learn("server", HERE, replace(definition("t", "a", "b"), collation="latin1_swedish_ci"))
    assert first is not None and first.source == "server"
    assert (first.tables[0].version, first.tables[0].previous_names) == (1, None)
    assert model.learn("table map", HERE, definition("t", "a", "b")) is None
    second = model.learn("table map", HERE, definition("t", "b", "c"))
    assert second is not None
    assert (second.tables[0].version, second.tables[0].previous_names) == (2, ("b", None))
    assert second.tables[0].collation == "latin1_swedish_ci"


def test_what_is_learned_after_a_doubt_has_no_previous_names():
    model = SchemaModel("mysql")
    model.learn("server", HERE, definition("t", "a"))
    model.mark_unsure("shop", "t", "why", HERE)
    assert (model.find("shop", "t"), model.doubt("shop", "t")) == (None, "why")
    change = model.learn("server", HERE, definition("t", "a"))
    assert change is not None
    assert (change.tables[0].version, change.tables[0].previous_names) == (3, None)
    assert model.doubt("shop", "t") is None


def test_a_learned_table_is_altered():
    model = SchemaModel("mysql")
    model.learn("server", HERE, replace(definition("t", "a"), collation="latin1_bin"))
    model.execute(query("ALTER TABLE t ADD b CHAR"), MYSQL_9, HERE)
    found = model.find("shop", "t")
    assert found is not None and found.columns[1].collation == "latin1_bin"


def test_a_learned_table_without_its_character_set():
    model = SchemaModel("mysql")
    model.learn("server", HERE, definition("t", "a"))
    model.execute(query("ALTER TABLE t ADD b INT"), MYSQL_9, HERE)
    assert model.find("shop", "t")
    model.execute(query("ALTER TABLE t ADD c CHAR"), MYSQL_9, HERE)
    found = model.find("shop", "t")
    assert found is not None and found.columns[2].charset == UNKNOWN_CHARSET
    model.execute(query("ALTER TABLE t CONVERT TO CHARACTER SET latin1"), MYSQL_9, HERE)
    assert "character set" in (model.doubt("shop", "t") or "")


def test_learn_database():
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
def test_a_restored_model_continues_as_the_one_before(statements, at):
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
def test_all_records_together_restore_the_model(statements):
    followed = Followed(MARIADB_11)
    records = [followed.run("CREATE DATABASE shop2"), *(followed.run(statement) for statement in statements)]
    model = SchemaModel("mariadb")
    model.restore([record for record in records if record is not None])
    assert list(model.tables()) == list(followed.model.tables())


@given(st.lists(st.sampled_from(STATEMENTS), max_size=12))
def test_versions_count_by_one(statements):
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
def test_any_clauses_lead_to_columns_or_a_doubt(clauses, version):
    followed = Followed(version)
    followed.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10), c INT, d TEXT, e ENUM('x','y'))")
    change = followed.run("ALTER TABLE t " + ", ".join(clauses))
    for table in change.tables if change else ():
        assert (table.columns is None) or (table.doubt is None)


@given(TYPES, VALUES, st.sampled_from([MYSQL_9, MYSQL_56, MARIADB_11]))
def test_any_default_has_a_text(column_type, value, version):
    followed = Followed(version)
    followed.run(f"CREATE TABLE t (a {column_type} DEFAULT {value})")
    followed.run("CREATE TABLE u (a INT)")
    followed.run(f"ALTER TABLE u ADD b {column_type} NOT NULL DEFAULT {value}")
    assert followed.model.find("shop", "t") or followed.model.doubt("shop", "t")


def test_the_record_of_a_statement_has_its_beginning():
    followed = Followed()
    change = followed.changed("CREATE TABLE t (a INT COMMENT '" + "x" * 2000 + "')")
    assert change.statement is not None and len(change.statement) == 1000
    assert (change.source, change.position) == ("statement", followed.position)
    assert pack(change)


def test_drop_default_leaves_auto_increment():
    followed = Followed()
    followed.run("CREATE TABLE t (a SERIAL, b DATETIME DEFAULT NOW())")
    followed.run("ALTER TABLE t ALTER a DROP DEFAULT, ALTER b DROP DEFAULT")
    assert [column.computed_default for column in followed.columns()] == [True, False]


def test_whether_a_generated_key_stays_in_the_first_place():
    followed = Followed()
    key = "my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY"
    followed.run(f"CREATE TABLE t ({key} INVISIBLE, a INT)")
    followed.run("ALTER TABLE t ADD b INT FIRST")
    followed.run(f"CREATE TABLE u ({key}, a INT)")
    followed.run("ALTER TABLE u ADD b INT FIRST")
    # Whether MySQL keeps it there depends on a setting that the binlog does not contain.
    assert "generated primary key" in (followed.model.doubt("shop", "t") or "")
    assert followed.names("u") == "b my_row_id a"


def test_a_text_column_that_is_changed_and_converted_at_once():
    followed = Followed()
    followed.run("CREATE TABLE t (a MEDIUMTEXT) CHARSET latin1")
    followed.run("ALTER TABLE t MODIFY a TEXT, CONVERT TO CHARACTER SET utf8mb4")
    assert "conversion" in (followed.model.doubt("shop", "t") or "")


@pytest.mark.parametrize(
    ("version", "declared", "collation"),
    [
        (MYSQL_9, "CHAR BINARY", "utf8mb4_bin"),
        (MYSQL_9, "CHAR BINARY COLLATE latin1_swedish_ci", "utf8mb4_bin"),
        (MYSQL_9, "CHAR CHARSET latin1 BINARY", "utf8mb4_unicode_ci"),
        (MYSQL_56, "CHAR CHARSET latin1 BINARY", "utf8mb4_bin"),
        (MARIADB_11, "CHAR CHARSET latin1 BINARY", "utf8mb4_unicode_ci"),
    ],
)
def test_binary_columns_in_a_conversion(version, declared, collation):
    followed = Followed(version)
    followed.run("CREATE TABLE t (a INT) CHARSET latin1")
    followed.run(f"ALTER TABLE t ADD b {declared}, CONVERT TO CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci")
    assert followed.columns()[1].collation == collation


def test_keys_using_hash_may_lose_their_hashes():
    followed = Followed(MARIADB_11)
    followed.run("CREATE TABLE t (a INT, UNIQUE (a) USING HASH)")
    followed.run("ALTER TABLE t RENAME TO u")
    assert followed.names("u") == "a DB_ROW_HASH_1"
    followed.run("ALTER TABLE u ADD b INT")
    assert "USING HASH" in (followed.model.doubt("shop", "u") or "")


def test_two_new_names_of_a_table():
    followed = Followed()
    followed.run("CREATE TABLE t (a INT)")
    followed.run("ALTER TABLE t RENAME TO u, RENAME TO t")
    assert "more than one new name" in (followed.model.doubt("shop", "t") or "")


def test_floating_constants_are_filled_with_zeros():
    followed = Followed()
    followed.run("CREATE TABLE t (a DOUBLE(10,2) ZEROFILL DEFAULT 1, b FLOAT ZEROFILL DEFAULT 1.5)")
    assert [column.default for column in followed.columns()] == ["0000001.00", "0000000001.5"]
