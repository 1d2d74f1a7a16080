"""Every form of ALTER TABLE: the columns that it leaves, as two real servers show them."""

from __future__ import annotations

import pytest

from engine.binlog.table_definition import ColumnDefinition
from tests.support.ddl import MARIADB_11, MYSQL_9, REFUSED, Followed, table_of

TABLE = (
    "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT, b VARCHAR(10), c DECIMAL(10,2) NOT NULL DEFAULT 1,"
    " d TEXT, e ENUM('x','y')) DEFAULT CHARSET latin1"
)
CASES = [
    (version, clauses, shown)
    for clauses, *results in table_of("ddl_alters.txt")
    for version, shown in zip((MYSQL_9, MARIADB_11), results, strict=True)
    if shown != REFUSED
]


def shown_column(column: ColumnDefinition, before: dict[str, ColumnDefinition]) -> str:
    if before.get(column.name) == column:
        return column.name
    parts = [column.name, column.column_type]
    parts += filter(None, (column.collation, column.generated))
    parts += [] if column.nullable else ["not null"]
    parts += [f"key{column.primary_key}"] if column.primary_key else []
    parts += [] if column.visible else ["invisible"]
    parts += ["computed"] if column.computed_default else []
    parts += [] if column.default is None else [f"default {column.default}"]
    return " ".join(parts)


@pytest.mark.parametrize(("version", "clauses", "shown"), CASES)
def test_columns_after(version: str, clauses: str, shown: str) -> None:
    followed = Followed(version)
    followed.run("CREATE DATABASE dd")
    followed.run(TABLE)
    before = {column.name: column for column in followed.columns()}
    followed.run(f"ALTER TABLE t {clauses}")
    places = (("t", "shop"), ("u", "shop"), ("u", "dd"))
    columns = next(filter(None, (followed.model.find(database, table) for table, database in places)))
    assert "; ".join(shown_column(column, before) for column in columns.columns) == shown


@pytest.mark.parametrize("version", [MYSQL_9, MARIADB_11])
@pytest.mark.parametrize(
    ("clauses", "previous"),
    [
        ("ADD n INT FIRST", (None, "id", "a", "b", "c", "d", "e")),
        ("DROP a, ADD a INT", ("id", "b", "c", "d", "e", None)),
        ("CHANGE a q INT AFTER c, RENAME COLUMN b TO a", ("id", "b", "c", "a", "d", "e")),
        ("CHANGE a b INT, CHANGE b a VARCHAR(10)", ("id", "a", "b", "c", "d", "e")),
    ],
)
def test_previous_names(version: str, clauses: str, previous: tuple[str | None, ...]) -> None:
    followed = Followed(version)
    followed.run(TABLE)
    change = followed.changed(f"ALTER TABLE t {clauses}")
    assert change.tables[0].previous_names == previous


@pytest.mark.parametrize(
    "clauses",
    [
        "ADD INDEX (a)",
        "ENGINE=InnoDB",
        "ADD UNIQUE (b)",
        "DROP INDEX i",
        "COMMENT 'DROP a'",
        "FORCE",
        "ADD CHECK (a>1)",
    ],
)
def test_clauses_without_effect_on_columns(clauses: str) -> None:
    followed = Followed()
    followed.run(TABLE)
    assert followed.run(f"ALTER TABLE t {clauses}") is None


@pytest.mark.parametrize(
    ("column", "filled"),
    [
        ("n INT", None),
        ("n INT NOT NULL", "0"),
        ("n INT DEFAULT 5", "5"),
        ("n VARCHAR(5) NOT NULL", ""),
        ("n VARCHAR(5) DEFAULT 'x'", "x"),
        ("n DECIMAL(10,2) NOT NULL", "0.00"),
        ("n DATE NOT NULL", "0000-00-00"),
        ("n DATETIME(3) NOT NULL", "0000-00-00 00:00:00.000"),
        ("n TIME(1) NOT NULL", "00:00:00.0"),
        ("n YEAR NOT NULL", "0000"),
        ("n ENUM('x','y') NOT NULL", "x"),
        ("n SET('x','y') NOT NULL", ""),
        ("n BIT(4) NOT NULL", "b'0'"),
        ("n DECIMAL(3,2) DEFAULT '9.994'", "9.99"),
        ("n DECIMAL(5,5) DEFAULT 0.5", "0.50000"),
        ("n DECIMAL(5) DEFAULT -99999.4", "-99999"),
        ("n DOUBLE NOT NULL", "0"),
        ("n DOUBLE(5,2) DEFAULT 1.005", "1.00"),
        ("n DOUBLE(5,2) DEFAULT 1.115", "1.12"),
        ("n FLOAT DEFAULT 16777217", "16777217"),
        ("n YEAR DEFAULT '0'", "2000"),
        ("n YEAR DEFAULT 0", "0000"),
        ("n TIME(2) DEFAULT '1 10:00:00.126'", "34:00:00.13"),
        ("n VARCHAR(9) DEFAULT 1.50", "1.50"),
        ("n VARCHAR(9) DEFAULT 1.5e3", "1500"),
        ("n CHAR(9) DEFAULT 007.50", "7.50"),
        ("n TEXT DEFAULT 1e3", "1000"),
        ("n VARCHAR(9) DEFAULT _latin1'x'", "x"),
        ("n TIME DEFAULT '-12:34'", "-12:34:00"),
        ("n TIME DEFAULT 123456", "12:34:56"),
        ("n DATE DEFAULT 20260102", "2026-01-02"),
        ("n SET('x','y') DEFAULT 'y,x'", "x,y"),
        ("n ENUM('Yes','No') DEFAULT 'no'", "No"),
        ("n DOUBLE DEFAULT 1e300", "1e300"),
        ("n VARBINARY(9) DEFAULT '0x41'", "0x30783431"),
        ("n VARBINARY(9) DEFAULT 0x0001", "0x0001"),
        ("n VARBINARY(9) DEFAULT 0xABC", "0x0abc"),
        ("n VARBINARY(9) DEFAULT x'00FF'", "0x00ff"),
        ("n VARBINARY(9) DEFAULT x''", ""),
        ("n VARBINARY(9) DEFAULT b'0000000001000001'", "0x0041"),
        ("n BINARY(9) DEFAULT ''", ""),
        ("n BLOB DEFAULT x'ff00'", "0xff00"),
        ("n UUID DEFAULT '6CCD780cbaba102695645b8c656024db'", "6ccd780c-baba-1026-9564-5b8c656024db"),
        ("n INET6 DEFAULT '0::1'", "::1"),
        ("n INET6 DEFAULT '::FFFF:1.2.3.4'", "::ffff:1.2.3.4"),
        ("n INET6 DEFAULT '::1.2.3.4'", "::1.2.3.4"),
        ("n DATETIME DEFAULT '2026-11-28'", "2026-11-28 00:00:00"),
        ("n VARCHAR(9) CHARACTER SET ujis DEFAULT 0x41", "A"),
    ],
)
def test_values_that_rows_got(column: str, filled: str | None) -> None:
    mariadb = column.startswith(("n BLOB", "n TEXT", "n UUID", "n INET6"))
    followed = Followed(MARIADB_11) if mariadb else Followed()
    followed.run("CREATE TABLE t (a INT)")
    change = followed.changed(f"ALTER TABLE t ADD {column}")
    expected = None if filled is None else (None, filled)
    assert (change.tables[0].filled, change.rewritten) == (expected, ())


@pytest.mark.parametrize(
    "clause",
    [
        "ADD n DATETIME DEFAULT CURRENT_TIMESTAMP",
        "ADD n DATETIME DEFAULT '2026-11-28 01:02:03+05:30'",
        "ADD n VARCHAR(9) CHARACTER SET ujis DEFAULT 0xA4A2",
        "ADD n VARCHAR(9) CHARACTER SET ucs2 DEFAULT 0x0041",
        "ADD n VARCHAR(9) DEFAULT _latin1'\u00e9'",
        "ADD n VARCHAR(9) DEFAULT -0.0",
        "ADD n VARBINARY(3) DEFAULT '\u00e9'",
        "ADD n VARBINARY(3) DEFAULT 1e3",
        "ADD n TIME DEFAULT '2026-01-02 10:11:12'",
        "ADD n TIME DEFAULT 20260102030405",
        "ADD n DATETIME DEFAULT 2.5e-1",
        "ADD n DECIMAL(5,5) DEFAULT '1.2'",
        "ADD n DECIMAL(3,2) DEFAULT '9.995'",
        "ADD n FLOAT(5,2) DEFAULT 1000",
        "ADD n DECIMAL(9,2) DEFAULT '26-01-02'",
        "ADD n DECIMAL(65,30) DEFAULT -0.0",
        "ADD n DECIMAL(9,2) DEFAULT '-x'",
        "ADD n TINYINT UNSIGNED DEFAULT -1",
        "ADD n BIT(64) DEFAULT -1",
        "ADD n YEAR DEFAULT '1.50'",
        "ADD n ENUM('x') DEFAULT 0x78",
        "ADD n ENUM('\u00e9') DEFAULT _latin1'\u00e9'",
        "ADD n VARCHAR(36) DEFAULT (uuid())",
        "ADD n INT AUTO_INCREMENT UNIQUE",
        "ADD n INT AS (a + 1)",
        "ADD n INT AS (a + 1) STORED",
        "MODIFY b VARCHAR(5)",
        "MODIFY b INT",
        "MODIFY d VARBINARY(10)",
        "MODIFY e ENUM('y','x')",
        "CONVERT TO CHARACTER SET ascii",
        "DROP PARTITION p0",
        "TRUNCATE PARTITION ALL",
        "IMPORT TABLESPACE",
    ],
)
def test_rows_change_without_events(clause: str) -> None:
    followed = Followed()
    followed.run(TABLE)
    assert [str(name) for name in followed.changed(f"ALTER TABLE t {clause}").rewritten] == ["shop.t"]


@pytest.mark.parametrize("kind", ["VIRTUAL", "STORED"])
def test_a_generated_column_that_is_declared_again_may_have_another_expression(kind: str) -> None:
    followed = Followed()
    followed.run(f"CREATE TABLE t (a INT, b INT, g INT AS (a + 1) {kind})")
    assert not followed.changed("ALTER TABLE t MODIFY a INT COMMENT 'x', ADD c INT").rewritten
    for clauses in (f"MODIFY g INT AS (b + 1) {kind}", f"CHANGE g h INT AS (a + 1) {kind}"):
        assert [str(name) for name in followed.changed(f"ALTER TABLE t {clauses}").rewritten] == ["shop.t"]


def test_not_null_may_change_values_unless_the_mode_is_strict() -> None:
    followed = Followed()
    followed.run(TABLE)
    assert not followed.changed("ALTER TABLE t MODIFY a INT NOT NULL").rewritten
    assert followed.changed("ALTER TABLE t MODIFY d TEXT NOT NULL", sql_mode=0).rewritten
