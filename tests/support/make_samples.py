"""Makes the sample binlogs that the package brings along: `python -m tests.support.make_samples`.

A small shop on a real MySQL 9.7 with full row metadata: three tables, a DDL statement in the middle, changes
of every kind, one rotation. `binlog-engine demo` streams them, and the kernels are compiled by decoding them
and a third file, of one compressed transaction.
"""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta

from tests import PROJECT
from tests.servers import Server, get_server

SAMPLES = PROJECT / "engine" / "binlog" / "samples"

_TABLES = (
    "CREATE DATABASE shop",
    """CREATE TABLE shop.customers (
        id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT, name VARCHAR(60) NOT NULL, email VARCHAR(80),
        born DATE, tier ENUM('basic','silver','gold') NOT NULL DEFAULT 'basic',
        tags SET('news','beta','b2b'), created TIMESTAMP(3) NULL)""",
    """CREATE TABLE shop.products (
        sku CHAR(8) PRIMARY KEY, title TEXT, price DECIMAL(10,2) NOT NULL, weight DOUBLE,
        scale FLOAT,
        stock SMALLINT NOT NULL, active BIT(1) NOT NULL, flags BIT(12), attributes JSON, photo BLOB,
        launched YEAR, opens TIME(2), embedding VECTOR(3), site GEOMETRY)""",
    """CREATE TABLE shop.orders (
        id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, customer_id INT UNSIGNED NOT NULL,
        sku CHAR(8) NOT NULL,
        quantity TINYINT NOT NULL, total DECIMAL(12,2) NOT NULL, placed DATETIME(6) NOT NULL,
        status VARCHAR(12) NOT NULL, note MEDIUMTEXT)""",
)
_NAMES = ("Ada", "Grace", "Edsger", "Barbara", "Donald", "Frances", "Ken", "Radia", "Łukasz", "Zoë")
_STATUS = ("paid", "packed", "shipped")


def main() -> None:
    """Run the shop and copy its two binlog files."""
    options = {"binlog_row_metadata": "FULL", "gtid_mode": "ON", "enforce_gtid_consistency": "ON"}
    with get_server("mysql-9.7", {**options, "log_bin": "shop-binlog"}) as server:
        server.query("RESET BINARY LOGS AND GTIDS")
        for statement in _TABLES:
            server.query(statement)
        _fill(server)
        server.query("FLUSH LOGS")
        server.query("ALTER TABLE shop.orders ADD COLUMN gift BOOLEAN NOT NULL DEFAULT FALSE AFTER status")
        _change(server)
        server.query("FLUSH LOGS")
        _compress(server)
        server.query("FLUSH LOGS")
        SAMPLES.mkdir(exist_ok=True)
        shop = server.binlogs()[:3]
        for path, name in zip(shop, (shop[0].name, shop[1].name, "compressed-binlog.000001"), strict=True):
            shutil.copyfile(path, SAMPLES / name)
            print(SAMPLES / name, path.stat().st_size)


def _fill(server: Server) -> None:
    start = datetime(2026, 1, 5, 9, 0, 0, 123456)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO shop.customers VALUES (0, %s, %s, %s, %s, %s, %s)",
            [
                (
                    name,
                    None if number % 4 == 3 else f"{name.lower()}@example.org",
                    f"19{60 + number}-0{1 + number % 9}-11",
                    ("basic", "silver", "gold")[number % 3],
                    ("news", "news,beta", "", None)[number % 4],
                    start + timedelta(days=number),
                )
                for number, name in enumerate(_NAMES)
            ],
        )
        for number in range(8):
            cursor.execute(
                "INSERT INTO shop.products VALUES (%s, %s, %s, %s, %s, %s, b%s, b%s, %s, %s, %s, %s, "
                "STRING_TO_VECTOR(%s), ST_GeomFromText(%s))",
                (
                    f"SKU{number:04}",
                    f"Product number {number}: " + "very " * number + "good",
                    f"{9.95 * (number + 1):.2f}",
                    0.1 * number,
                    1.5 * number,
                    100 * number - 50,
                    str(number % 2),
                    f"{number * 37:b}",
                    f'{{"color": "c{number}", "sizes": [1, 2.5, null, true], "nested": {{"a": "é"}}}}',
                    bytes(range(number * 3)),
                    2019 + number,
                    f"-0{number}:30:00.25",
                    f"[{number}, 0.5, -1]",
                    f"POINT({number} {number + 1})",
                ),
            )
        connection.commit()
        for number in range(200):
            cursor.execute(
                "INSERT INTO shop.orders VALUES (0, %s, %s, %s, %s, %s, 'new', %s)",
                (
                    number % len(_NAMES) + 1,
                    f"SKU{number % 8:04}",
                    number % 5 + 1,
                    f"{(number % 5 + 1) * 9.95:.2f}",
                    start + timedelta(minutes=7 * number),
                    "please ring twice" if number % 10 == 0 else None,
                ),
            )
            connection.commit()


def _change(server: Server) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for number in range(1, 151):
            cursor.execute(
                "UPDATE shop.orders SET status = %s, gift = %s WHERE id = %s",
                (_STATUS[number % 3], number % 9 == 0, number),
            )
            connection.commit()
        cursor.execute("DELETE FROM shop.orders WHERE status = 'shipped' AND quantity = 5")
        cursor.execute("UPDATE shop.products SET price = price * 0.9, stock = stock - 1 WHERE active = b'1'")
        cursor.execute("UPDATE shop.customers SET tier = 'gold' WHERE id IN (2, 5, 9)")
        connection.commit()
        cursor.execute(
            "INSERT INTO shop.orders SELECT NULL, customer_id, sku, 1, total, placed, 'again', 0, note "
            "FROM shop.orders WHERE id <= 20"
        )
        connection.commit()


def _compress(server: Server) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
        cursor.execute("UPDATE shop.customers SET tier = 'silver'")
        connection.commit()


if __name__ == "__main__":
    main()
