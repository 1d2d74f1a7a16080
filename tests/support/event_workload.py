"""Statements that make a server write about every kind of event that it can write."""

from __future__ import annotations

from pathlib import Path

from tests.servers import Server

_COMMON = {
    "gtid_mode": "ON",
    "enforce_gtid_consistency": "ON",
    "binlog_rows_query_log_events": "ON",
}
OPTIONS = {
    "mysql-9.7": _COMMON | {"binlog_row_metadata": "FULL"},
    "mysql-8.0": _COMMON | {"binlog_row_metadata": "FULL"},
    "mysql-5.7": _COMMON,
    "mysql-5.6": _COMMON | {"log_slave_updates": "ON"},
    "mariadb-10.11": {"binlog_row_metadata": "FULL", "binlog_annotate_row_events": "ON"},
    "mariadb-11.8": {"binlog_row_metadata": "FULL", "binlog_annotate_row_events": "ON"},
}

ALL_TYPES = """
    ti TINYINT, tu TINYINT UNSIGNED, si SMALLINT, mi MEDIUMINT UNSIGNED, i INT, iu INT UNSIGNED, bi BIGINT,
    bu BIGINT UNSIGNED, f FLOAT, d DOUBLE, dc DECIMAL(10,2), du DECIMAL(20,5) UNSIGNED, b1 BIT(1),
    b13 BIT(13), b16 BIT(16), da DATE, dt DATETIME, dt6 DATETIME(6), ts TIMESTAMP NULL, ts3 TIMESTAMP(3) NULL,
    t TIME, t2 TIME(2), y YEAR, c CHAR(10), c255 CHAR(255) CHARACTER SET utf8mb4,
    cl CHAR(10) CHARACTER SET latin1,
    vc VARCHAR(20), vcu VARCHAR(20) CHARACTER SET ucs2, bn BINARY(5), vb VARBINARY(300), tt TINYTEXT,
    tx TEXT CHARACTER SET latin1, mt MEDIUMTEXT, lt LONGTEXT, tb TINYBLOB, bl BLOB, mb MEDIUMBLOB,
    lb LONGBLOB, e ENUM('a','b','ä') CHARACTER SET latin1, s SET('x','y','ü'),
    eu ENUM('q','ß') CHARACTER SET ucs2, g GEOMETRY, p POINT
"""
EXTRA_TYPES = {
    "mysql-9.7": "j JSON, v VECTOR(4), big BIGINT UNSIGNED, inv INT INVISIBLE DEFAULT 7",
    "mysql-8.0": "j JSON, big BIGINT UNSIGNED",
    "mysql-5.7": "j JSON, big BIGINT UNSIGNED",
    "mysql-5.6": "big BIGINT UNSIGNED",
    "mariadb-10.11": """j JSON, u UUID, i6 INET6, i4 INET4, cb TEXT COMPRESSED, cv VARCHAR(100) COMPRESSED,
        cvb VARBINARY(100) COMPRESSED, inv INT INVISIBLE DEFAULT 7, big BIGINT UNSIGNED""",
    "mariadb-11.8": """j JSON, u UUID, i6 INET6, i4 INET4, cb TEXT COMPRESSED, cv VARCHAR(100) COMPRESSED,
        cvb VARBINARY(100) COMPRESSED, v VECTOR(4), inv INT INVISIBLE DEFAULT 7, big BIGINT UNSIGNED""",
}


def create_all_types(server: Server, table: str) -> None:
    """Create a table with every column type of the server."""
    types = f"{ALL_TYPES}, {EXTRA_TYPES[server.flavor]}"
    server.execute(f"CREATE TABLE {table} (id INT UNSIGNED AUTO_INCREMENT, {types}, PRIMARY KEY (id))")


def run_workload(server: Server, load_file: Path) -> list[Path]:
    """Write all kinds of events; returns the complete binlog files that hold them."""
    run = server.execute
    first = server.binlogs()[-1]
    run("CREATE DATABASE shop", "USE shop")
    create_all_types(server, "all_types")
    run("INSERT INTO all_types (ti, e, s, c) VALUES (-1, 'ä', 'x,ü', 'grün')")
    run("UPDATE all_types SET ti = 5", "DELETE FROM all_types")
    run("CREATE TABLE pk (a INT, b VARCHAR(40), c INT, PRIMARY KEY (c, b(10)))")
    run(
        "INSERT INTO pk VALUES (1, 'one', 2), (NULL, '', -3)",
        "UPDATE pk SET a = 7",
        "DELETE FROM pk WHERE c = 2",
    )
    _run_statements(server, load_file)
    run("XA START 'gt','bq',7", "INSERT INTO pk VALUES (5, 'xa', 5)", "XA END 'gt','bq',7")
    run("XA PREPARE 'gt','bq',7", "XA COMMIT 'gt','bq',7")
    if server.flavor == "mysql-9.7":
        _run_mysql_97(server)
    if server.flavor in ("mysql-9.7", "mysql-8.0"):
        _run_mysql_80(server)
    if server.installation.flavor.is_mariadb:
        _run_mariadb(server)
    run("SET NAMES latin1", "CREATE VIEW view1 AS SELECT 1 AS x", "SET NAMES utf8mb4")
    server.flush_binlog()
    run("INSERT INTO pk VALUES (40, 'next', 40)")
    last = server.flush_binlog()
    return [path for path in server.binlogs() if first.name <= path.name <= last.name]


def _run_statements(server: Server, load_file: Path) -> None:
    run = server.execute
    run("SET SESSION binlog_format = STATEMENT")
    run(
        "CREATE TABLE statements "
        "(id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(50), r DOUBLE, t TIMESTAMP NULL)"
    )
    run("SET @s = 'text', @i = -5, @u = 18446744073709551615, @d = 1.5e0, @dec = -12345.6789, @n = NULL")
    run("INSERT INTO statements (a, r, t) VALUES (@s, RAND(), NOW())")
    run(
        "INSERT INTO statements (a, r) VALUES (@i, @d)",
        "INSERT INTO statements (a) VALUES (@u), (@dec), (@n)",
    )
    run("INSERT INTO statements (a) VALUES (LAST_INSERT_ID())", "SET time_zone = '+02:00'")
    run("INSERT INTO statements (a, t) VALUES ('zone', NOW())", "SET lc_time_names = 'de_DE'")
    run("INSERT INTO statements (a) VALUES (DATE_FORMAT('2024-03-01', '%M'))")
    load_file.write_text("100\tloaded\n101\tzwei\n")
    run(f"LOAD DATA INFILE '{load_file}' REPLACE INTO TABLE statements (id, a)")
    run("SET SESSION binlog_format = ROW", "SET time_zone = '+00:00'")


def _run_mysql_97(server: Server) -> None:
    run = server.execute
    run(
        "SET binlog_transaction_compression = ON",
        "BEGIN",
        "INSERT INTO pk VALUES (8, 'zip', 8), (9, 'zip', 9)",
    )
    run("UPDATE pk SET a = a + 1", "COMMIT", "SET binlog_transaction_compression = OFF")
    run("SET gtid_next = 'AUTOMATIC:app_tag'", "INSERT INTO pk VALUES (20, 'tag', 20)")
    run("INSERT INTO pk VALUES (21, 'tag', 21)", "SET gtid_next = 'AUTOMATIC'")


def _run_mysql_80(server: Server) -> None:
    run = server.execute
    run("CREATE TABLE parts (id INT PRIMARY KEY, a INT) PARTITION BY HASH (id) PARTITIONS 4")
    run("INSERT INTO parts VALUES (1, 1), (2, 2)", "UPDATE parts SET id = 3 WHERE id = 1")
    run(
        "SET SESSION binlog_row_value_options = PARTIAL_JSON",
        "CREATE TABLE docs (id INT PRIMARY KEY, j JSON)",
    )
    run(
        """INSERT INTO docs VALUES (1, '{"a": 1, "b": [1, 2, 3]}')""",
        "UPDATE docs SET j = JSON_SET(j, '$.a', 2)",
    )
    run("SET SESSION binlog_row_value_options = ''")


def _run_mariadb(server: Server) -> None:
    run = server.execute
    run("SET GLOBAL log_bin_compress = ON", "SET GLOBAL log_bin_compress_min_len = 10")
    run("INSERT INTO pk VALUES (30, 'packed', 30), (31, 'packed', 31)", "UPDATE pk SET a = 1 WHERE c = 30")
    run("DELETE FROM pk WHERE c = 31", "SET SESSION binlog_format = STATEMENT")
    run("INSERT INTO pk VALUES (33, REPEAT('packed', 3), 33)", "SET SESSION binlog_format = ROW")
    run("SET GLOBAL log_bin_compress = OFF")
