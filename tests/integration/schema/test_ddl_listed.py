"""Statements that the random ones do not contain: the model has the server's tables, and is certain of them.

See `test_ddl_differential` for the random ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from engine.binlog.events.statements import Query
from engine.net.client.connection import Connection
from engine.net.client.table_columns import describe_tables
from engine.schema.model import SchemaModel
from tests.servers import FLAVORS, Server
from tests.support.ddl_comparison import BinlogTail, difference_of

pytestmark = pytest.mark.server

DATABASES = ("listed", "listed_too")
PREPARED = [
    "CREATE DATABASE listed CHARACTER SET latin1",
    "CREATE DATABASE listed_too CHARACTER SET latin2",
    "USE listed",
]

ALL = "mysql", "mariadb"
CASES: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "a key named type": (
        ALL,
        [
            "CREATE TABLE t (type INT, a INT, KEY type (type))",
            "CREATE TABLE u (type INT, UNIQUE type TYPE BTREE (type), PRIMARY KEY type (type))",
            "ALTER TABLE u DROP KEY type, ADD UNIQUE KEY type (type) USING BTREE, ADD b INT",
        ],
    ),
    "partitions at the end of an ALTER TABLE": (
        ALL,
        [
            "CREATE TABLE t (a INT)",
            "ALTER TABLE t ADD b INT, ADD c INT PARTITION BY HASH (a) PARTITIONS 2",
            "ALTER TABLE t DROP b REMOVE PARTITIONING",
        ],
    ),
    "text in the place of text in keys": (
        ALL,
        [
            "CREATE TABLE t (s VARCHAR(10) PRIMARY KEY, a INT)",
            "ALTER TABLE t DROP s, ADD s VARCHAR(20)",
            "CREATE TABLE u (s VARCHAR(10), a INT, PRIMARY KEY (a, s))",
            "ALTER TABLE u DROP s, ADD S CHAR(20) FIRST, ADD b INT",
            "ALTER TABLE u DROP s, DROP PRIMARY KEY, ADD s CHAR(20)",
        ],
    ),
    "numbers in the place of numbers in keys": (
        ("mysql-8", "mysql-9", "mariadb"),
        [
            "CREATE TABLE t (i INT PRIMARY KEY, a INT)",
            "ALTER TABLE t DROP i, ADD i INT UNSIGNED",
            "ALTER TABLE t CHANGE i j INT, ADD i INT",
            "ALTER TABLE t CHANGE j i2 INT, ADD j INT FIRST",
            "ALTER TABLE t RENAME COLUMN j TO k, ADD j INT",
            "ALTER TABLE t RENAME COLUMN k TO l, ADD k INT FIRST",
            "CREATE TABLE u (i INT, a INT, PRIMARY KEY (i, a))",
            "ALTER TABLE u CHANGE i j INT, ADD i BIGINT AFTER a",
            "ALTER TABLE u DROP a, ADD a INT UNSIGNED FIRST",
        ],
    ),
    "long text in the place of long text in a unique key": (
        ("mariadb",),
        [
            "CREATE TABLE t (a TEXT UNIQUE, b INT)",
            "ALTER TABLE t DROP a, ADD a TEXT FIRST",
            "ALTER TABLE t DROP a",
        ],
    ),
    "forms that MariaDB alone has": (
        ("mariadb",),
        [
            "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(99) DEFAULT @@version, c INT DEFAULT @v, d INT)",
            "ALTER TABLE t DROP CONSTRAINT PRIMARY KEY",
            "CREATE TABLE u (a JSON COMPRESSED, b INT)",
            "ALTER TABLE u WITH SYSTEM VERSIONING",
        ],
    ),
    "IF NOT EXISTS with the names of hidden columns": (
        ("mariadb",),
        [
            "SET system_versioning_alter_history = KEEP",
            "CREATE TABLE t (a INT) WITH SYSTEM VERSIONING",
            "ALTER TABLE t ADD COLUMN IF NOT EXISTS row_end INT FIRST, ADD b INT",
            "ALTER TABLE t ADD COLUMN IF NOT EXISTS (ROW_START INT, c INT)",
            "CREATE TABLE u (a INT)",
            "ALTER TABLE u ADD COLUMN IF NOT EXISTS row_end INT FIRST",
        ],
    ),
    "DROP COLUMN of both limits of the system time": (
        ("mariadb",),
        [
            "SET system_versioning_alter_history = KEEP",
            "CREATE TABLE t (a INT PRIMARY KEY, s TIMESTAMP(6) AS ROW START, e TIMESTAMP(6) AS ROW END, "
            "b TEXT, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING",
            "ALTER TABLE t DROP s, DROP e, ADD UNIQUE (b)",
            "ALTER TABLE t ADD c INT",
            "CREATE TABLE u (a INT, s TIMESTAMP(6) AS ROW START, e TIMESTAMP(6) AS ROW END, "
            "PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING",
            "ALTER TABLE u DROP s, DROP e, DROP SYSTEM VERSIONING",
        ],
    ),
    "unique keys in clauses with IF EXISTS": (
        ("mariadb",),
        [
            "CREATE TABLE t (s TEXT UNIQUE, a INT, b TEXT, KEY b (a))",
            "ALTER TABLE t CHANGE COLUMN IF EXISTS s s TINYTEXT CHARACTER SET utf8mb4 UNIQUE",
            "ALTER TABLE t MODIFY COLUMN IF EXISTS a INT UNIQUE",
            "ALTER TABLE t MODIFY COLUMN b TINYTEXT UNIQUE",
            "CREATE TABLE u (a INT, b TEXT, UNIQUE KEY b (a))",
            "ALTER TABLE u MODIFY COLUMN IF EXISTS b TINYTEXT UNIQUE",
        ],
    ),
    "MODIFY of a column that the statement adds": (
        ("mariadb",),
        [
            "CREATE TABLE t (a INT NOT NULL, z INT)",
            "ALTER TABLE t ADD COLUMN IF NOT EXISTS b INT NOT NULL DEFAULT 2, MODIFY b BIGINT",
            "ALTER TABLE t ADD COLUMN IF NOT EXISTS b INT NOT NULL DEFAULT 2, MODIFY b SMALLINT",
            "ALTER TABLE t ADD c INT, MODIFY COLUMN IF EXISTS c BIGINT",
            "ALTER TABLE t ADD d INT FIRST, ALTER d SET DEFAULT 5, MODIFY d BIGINT AFTER a, ADD e INT",
            "ALTER TABLE t ADD f INT PRIMARY KEY FIRST, MODIFY f BIGINT",
            "ALTER TABLE t ADD g INT, MODIFY g BIGINT, MODIFY g TINYINT",
            "ALTER TABLE t ADD h INT, ALTER h SET DEFAULT 5",
            "ALTER TABLE t DROP a, ADD a INT, MODIFY a BIGINT",
        ],
    ),
    "names beyond the Basic Multilingual Plane": (
        ("mysql",),
        [
            "CREATE TABLE t (a INT, `😀b` INT, 😀 INT)",
            "ALTER TABLE t CHANGE 😀 c INT, ADD `1😀` INT UNSIGNED",
        ],
    ),
    "MariaDB's Oracle dialect": (
        ("mariadb",),
        [
            "SET sql_mode = ORACLE",
            "CREATE TABLE t (a BLOB, b BLOB(100), c BLOB(65535), d CLOB, e RAW(5), f VARCHAR2(9))",
            "TRUNCATE TABLE t DROP STORAGE",
            "TRUNCATE TABLE t REUSE STORAGE",
        ],
    ),
    "MariaDB's MSSQL dialect": (
        ("mariadb",),
        [
            "SET sql_mode = MSSQL",
            r"CREATE TABLE [t]] `\] ([a b] INT, [c.\"d`] INT)",
            r"ALTER TABLE [t]] `\] ADD [e] INT, DROP [a b]",
        ],
    ),
    "unique keys of points": (
        ("mariadb",),
        [
            "CREATE TABLE t (g POINT UNIQUE, a INT)",
            "ALTER TABLE t ADD UNIQUE (a, g), ADD b TEXT UNIQUE",
            "ALTER TABLE t MODIFY g POINT NOT NULL FIRST, ADD PRIMARY KEY (g)",
        ],
    ),
    "sequences": (
        ("mariadb",),
        [
            "CREATE SEQUENCE s START WITH 5 COMMENT 'AS INT'",
            "CREATE SEQUENCE IF NOT EXISTS listed_too.s",
            "CREATE OR REPLACE SEQUENCE s CACHE 10",
            "ALTER SEQUENCE s RESTART 7",
            "CREATE TABLE v (a INT DEFAULT NEXT VALUE FOR s, b INT DEFAULT PREVIOUS VALUE FOR s, c INT)",
            "RENAME TABLE s TO u",
            "CREATE TABLE t (a INT)",
            "DROP SEQUENCE IF EXISTS t, u, missing",
            "CREATE TABLE IF NOT EXISTS u (a INT)",
        ],
    ),
    "sequences of other types": (
        ("mariadb-11",),
        [
            "CREATE SEQUENCE s AS INT UNSIGNED START WITH 5",
            "ALTER SEQUENCE s MAXVALUE 100",
            "ALTER SEQUENCE s AS SMALLINT",
            "CREATE SEQUENCE u START WITH 5 AS TINYINT",
        ],
    ),
    "CONVERT TO CHARACTER SET DEFAULT": (
        ALL,
        [
            "ALTER DATABASE listed COLLATE latin1_bin",
            "CREATE TABLE listed_too.t (a TEXT)",
            "ALTER TABLE listed_too.t CONVERT TO CHARACTER SET DEFAULT",
            "CREATE TABLE t (a TEXT CHARACTER SET latin2)",
            "SET collation_database = latin7_bin",
            "ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT",
            "CREATE DATABASE listed_once",
            "USE listed_once",
            "SET collation_server = latin5_bin",
            "DROP DATABASE listed_once",
            "ALTER TABLE listed.t CONVERT TO CHARACTER SET DEFAULT",
        ],
    ),
    "CHARACTER SET after COLLATE": (
        ALL,
        [
            "CREATE TABLE t (a CHAR) COLLATE latin2_bin CHARACTER SET latin2",
            "ALTER TABLE t COLLATE latin1_bin CHARSET latin1, ADD b CHAR",
            "ALTER DATABASE listed_too COLLATE latin2_bin CHARACTER SET latin2",
            "CREATE TABLE listed_too.t (a CHAR)",
        ],
    ),
    "CHARACTER SET DEFAULT after COLLATE": (
        ("mysql-5",),
        [
            "CREATE TABLE t (a CHAR) COLLATE latin2_bin CHARACTER SET DEFAULT",
            "ALTER TABLE t COLLATE latin2_bin, CHARSET DEFAULT, ADD b CHAR",
        ],
    ),
    "COLLATE DEFAULT in a conversion": (
        ("mysql-5", "mariadb"),
        [
            "ALTER DATABASE listed COLLATE latin1_bin",
            "CREATE TABLE t (a TEXT)",
            "ALTER TABLE t CONVERT TO CHARACTER SET latin1 COLLATE DEFAULT",
            "ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT COLLATE DEFAULT",
        ],
    ),
    "compressed columns that get the character set binary": (
        ("mariadb",),
        [
            "CREATE TABLE t (a TINYTEXT COMPRESSED, b VARCHAR(9) COMPRESSED, c TEXT COMPRESSED, d CHAR(3))",
            "ALTER TABLE t CONVERT TO CHARACTER SET binary",
        ],
    ),
    "a primary key WITHOUT OVERLAPS": (
        ("mariadb",),
        [
            "CREATE TABLE t (a INT, s DATE, e DATE, PERIOD FOR p (s, e), "
            "PRIMARY KEY (a, p WITHOUT OVERLAPS))",
            "ALTER TABLE t RENAME COLUMN a TO b, ADD c INT NOT NULL",
            "ALTER TABLE t DROP PRIMARY KEY",
            "ALTER TABLE t ADD PRIMARY KEY (c, b, P WITHOUT OVERLAPS)",
            "CREATE TABLE u (a INT, s DATE, e DATE)",
            "ALTER TABLE u ADD PERIOD FOR p (s, e), ADD PRIMARY KEY (a, p WITHOUT OVERLAPS)",
            "CREATE TABLE v (a INT, s DATE, e DATE, PERIOD FOR p (s, e), "
            "PRIMARY KEY (a, p WITHOUT OVERLAPS)) WITH SYSTEM VERSIONING",
            "CREATE TABLE w (a INT, s DATE, e DATE, x TIMESTAMP(6) AS ROW START, y TIMESTAMP(6) AS ROW END, "
            "PERIOD FOR p (s, e), PERIOD FOR SYSTEM_TIME (x, y), PRIMARY KEY (a, p WITHOUT OVERLAPS)) "
            "WITH SYSTEM VERSIONING",
        ],
    ),
    "periods that may be there already, or not any more": (
        ("mariadb",),
        [
            "CREATE TABLE t (a DATE, b DATE, c DATE, d DATE)",
            "ALTER TABLE t ADD PERIOD IF NOT EXISTS FOR p (a, b)",
            "ALTER TABLE t ADD PERIOD IF NOT EXISTS FOR p (c, d)",
            "ALTER TABLE t DROP PERIOD IF EXISTS FOR p, MODIFY a DATE",
            "ALTER TABLE t DROP PERIOD IF EXISTS FOR p, ADD COLUMN period INT",
        ],
    ),
    "TIMESTAMP in the dialect of MaxDB": (
        ("mysql-5", "mariadb"),
        [
            "SET sql_mode = 'MAXDB'",
            "CREATE TABLE t (a TIMESTAMP, b TIMESTAMP(3) NOT NULL)",
            "ALTER TABLE t ADD c TIMESTAMP NULL, MODIFY a TIMESTAMP(6)",
        ],
    ),
    "utf8 that is utf8mb4": (
        ("mysql-9",),
        [
            "SET sql_mode = CONCAT(@@sql_mode, ',INTERPRET_UTF8_AS_UTF8MB4')",
            "CREATE TABLE t (a CHAR(9) CHARACTER SET UTF8, b NCHAR(9), c TEXT COLLATE utf8_bin, d CHAR(9))",
            "CREATE TABLE u (a VARCHAR(9), b NATIONAL VARCHAR(9)) CHARSET 'utf8' COLLATE utf8_unicode_ci",
            "ALTER TABLE t ADD e CHAR(9) CHARSET utf8 DEFAULT 'ß', CONVERT TO CHARACTER SET utf8",
            "ALTER DATABASE listed_too CHARACTER SET utf8",
            "CREATE TABLE listed_too.t (a CHAR(9))",
            "ALTER DATABASE listed_too COLLATE utf8_bin",
            "CREATE TABLE listed_too.u (a CHAR(9), b CHAR(9) CHARACTER SET utf8mb3)",
        ],
    ),
    "an empty string that is NULL": (
        ("mariadb",),
        [
            "SET sql_mode = 'EMPTY_STRING_IS_NULL'",
            "CREATE TABLE t (a VARCHAR(9) DEFAULT '', b CHAR(9) DEFAULT (''), c ENUM('', 'x') DEFAULT 'x')",
            "ALTER TABLE t ADD d VARCHAR(9) DEFAULT '', ADD e VARCHAR(9) DEFAULT _utf8'', "
            "ADD f VARCHAR(9) DEFAULT '' 'x', ADD g VARCHAR(9) DEFAULT '' ''",
        ],
    ),
    "as clients write it": (
        ALL,
        [
            "CREATE TABLE `t` (\n  `id` INT AUTO_INCREMENT PRIMARY KEY,\n  `a` VARCHAR(45) NULL\n)",
            "CREATE TABLE `u` (\n  `id` int AUTO_INCREMENT,\n  `a` text,\n  PRIMARY KEY (`id`)\n)",
            "CREATE TABLE IF NOT EXISTS `listed`.`v` (\n  `id` INT NOT NULL AUTO_INCREMENT,\n"
            "  `a` VARCHAR(45) NULL,\n  PRIMARY KEY (`id`),\n  UNIQUE INDEX `u` (`a` ASC))\nENGINE = InnoDB",
            "create table `w` (`id` bigint unsigned not null auto_increment primary key, `a` timestamp null) "
            "default character set utf8mb4 collate 'utf8mb4_unicode_ci'",
            "CREATE TABLE `x` (`id` int AUTO_INCREMENT NOT NULL PRIMARY KEY, `a` CHAR DEFAULT '' NOT NULL)",
            "CREATE TABLE IF NOT EXISTS `y` (`id` INTEGER NOT NULL auto_increment , PRIMARY KEY (`id`));",
            "ALTER TABLE `x` ADD COLUMN `b` varchar(9) DEFAULT 'x' NOT NULL, ADD CONSTRAINT `u` UNIQUE (`b`)",
            "ALTER TABLE t CHARACTER SET := utf8mb4, ADD b CHAR(3), ALGORITHM := COPY",
        ],
    ),
    "lengths with a fraction": (
        ALL,
        [
            "CREATE TABLE t (a DECIMAL(19.5), b FLOAT(7.4), c FLOAT(25.1), d DECIMAL(0.2) NOT NULL)",
            "ALTER TABLE t ADD e VARBINARY(7.9), MODIFY a DECIMAL(20.5) UNSIGNED, ADD f BIT(3.2) FIRST",
        ],
    ),
    "SERIAL that may be NULL": (
        ("mysql",),
        [
            "CREATE TABLE t (id SERIAL NULL, a INT)",
            "CREATE TABLE u (id SERIAL NULL NOT NULL)",
            "ALTER TABLE t MODIFY id SERIAL NOT NULL NULL FIRST, ADD b INT",
        ],
    ),
    "the table's name before that of a key": (
        ("mysql-5", "mariadb"),
        [
            "CREATE TABLE t (a INT KEY, b INT, KEY k (b), CONSTRAINT f FOREIGN KEY (b) REFERENCES t (a))",
            "ALTER TABLE t ADD t.c INT, DROP FOREIGN KEY t.f, ALTER t.b SET DEFAULT 3",
            "ALTER TABLE t ADD d INT, DROP KEY t.k",
        ],
    ),
    "CREATE INDEX that waits": (
        ("mariadb",),
        [
            "CREATE TABLE t (a INT NOT NULL, b INT)",
            "CREATE INDEX k ON t (a) NOWAIT COMMENT 'x' USING BTREE",
            "CREATE UNIQUE INDEX u ON t (a, b) WAIT 5 COMMENT 'x' ALGORITHM=INPLACE",
            "DROP INDEX k ON t WAIT 3",
        ],
    ),
    "an empty string in BLOB and TEXT columns": (
        ALL,
        [
            "SET sql_mode = ''",
            "CREATE TABLE t (a INT, b BLOB DEFAULT '', c TEXT NOT NULL DEFAULT '')",
            "ALTER TABLE t ADD d TINYTEXT DEFAULT '' FIRST, ADD e LONGBLOB NOT NULL DEFAULT ''",
        ],
    ),
    "names that only words have in common": (
        ALL,
        [
            "CREATE TABLE t (straße INT, strasse VARCHAR(9), É INT, PRIMARY KEY (straße))",
            "ALTER TABLE t MODIFY strasse INT NOT NULL FIRST, CHANGE é è INT",
            "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (STRASSE), ADD x INT AFTER straße",
            "ALTER TABLE t DROP STRAßE, ADD ΔΟΣ INT",
            "ALTER TABLE t DROP δοσ",
        ],
    ),
    "members of ENUM and SET as digits": (
        ALL,
        [
            "CREATE TABLE t (a ENUM(b'1001001', 'b', 0x43), b SET(b'100100101101111', X'4142'))",
            "ALTER TABLE t MODIFY a ENUM(0b1001010, b'1001001') FIRST, ADD c ENUM(b'0100001') NOT NULL",
        ],
    ),
    "defaults that begin like the current time": (
        ALL,
        [
            "CREATE TABLE t (a VARCHAR(9) DEFAULT 'nowhere', b ENUM('x', 'NOW') NOT NULL DEFAULT 'NOW')",
            "ALTER TABLE t ADD c VARCHAR(20) DEFAULT 'current_timestamp', ADD d DATETIME(3) DEFAULT NOW(3), "
            "ADD e TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
        ],
    ),
    "members with spaces at the end as defaults": (
        ALL,
        [
            "CREATE TABLE t (a SET(' ', 'a', 'b ') NOT NULL DEFAULT 'b ', b ENUM('x ', 'y') DEFAULT 'x  ')",
            "ALTER TABLE t ADD c SET('a', 'b') DEFAULT 'b,a ', ADD d ENUM('', 'x') DEFAULT ' '",
        ],
    ),
    "members that no catalog shows": (
        ALL,
        [
            "CREATE TABLE t (a ENUM('a😀', 'b') CHARSET utf8mb4, b SET('x🎉', 'é') CHARSET utf16)",
            "ALTER TABLE t ADD c ENUM('c😀', 'd?') CHARSET utf8mb4 DEFAULT 'c😀', "
            "MODIFY a ENUM('a😀', 'b') CHARSET latin1",
            "SET NAMES utf8",
            "ALTER TABLE t ADD d ENUM('e😀') CHARSET utf8mb4, ADD e SET('f😀') CHARSET latin1",
            "CREATE TABLE u LIKE t",
        ],
    ),
    "masking policies": (
        ("mysql-9",),
        [
            "CREATE TABLE t (a VARCHAR(9) MASKING POLICY p NOT NULL, b INT MASKING POLICY `p q` INVISIBLE)",
            "ALTER TABLE t ADD c INT MASKING POLICY p AFTER a, ALTER COLUMN a DROP MASKING POLICY",
            "ALTER TABLE t ALTER c SET MASKING POLICY q, MODIFY b BIGINT MASKING POLICY q FIRST",
        ],
    ),
}
"""What is shown: beginnings of the flavors that have it, and statements."""


@pytest.fixture(scope="module", params=FLAVORS)
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Iterator[Server]:
    server = shared_server(request.param)
    yield server
    server.execute(*(f"DROP DATABASE IF EXISTS {name}" for name in DATABASES))


@pytest.mark.parametrize("case", CASES)
def test_the_model_has_the_servers_tables(case: str, server: Server) -> None:
    flavors, statements = CASES[case]
    if not server.flavor.startswith(flavors):
        pytest.skip("this server has no such statements")
    model = SchemaModel("mariadb" if "mariadb" in server.flavor else "mysql")
    server.execute(*(f"DROP DATABASE IF EXISTS {name}" for name in DATABASES))
    tail = BinlogTail(server)
    with server.connect() as session, session.cursor() as cursor:
        for statement in [*PREPARED, *statements]:
            cursor.execute(statement)
            for position, body in tail.read():
                if isinstance(body, Query):
                    model.execute(body, server.installation.version, position)
            assert differences(model, server) == [], statement


def differences(model: SchemaModel, server: Server) -> list[str]:
    """Tables of which the model is not certain, or not as the server's catalog has them."""
    found = []
    catalog = Connection.open(server.host, server.port, server.user, server.password)
    for database in DATABASES:
        listed = catalog.query(
            f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}'"
        )
        names = {str(name) for (name,) in listed}
        names |= {each.table for each in model.tables() if each.database == database}
        described = describe_tables(catalog, database, names) if names else {}
        for name in names:
            ours, theirs = model.find(database, name), described.get(name)
            if ours is None or theirs is None:
                found.append(f"{name}: {ours} in the model, {theirs} on the server")
            elif (difference := difference_of(ours.columns, theirs.columns)) is not None:
                found.append(f"{name}: {difference}")
    catalog.close()
    return found
