"""Records the binlogs that the hostile bytes are made from: `python -m tests.fuzz.make_corpus`.

Each server writes all kinds of events and a row with a value in every column, so that damage to any of them
can be tried without a server.
"""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

from tests import DATA
from tests.servers import FLAVORS, Server, get_server
from tests.support.event_workload import ALL_TYPES, EXTRA_TYPES, OPTIONS, create_all_types, run_workload

CORPUS = DATA / "corpus"

VALUES = {
    "ti": "-128",
    "tu": "255",
    "si": "-32768",
    "mi": "16777215",
    "i": "-2147483648",
    "iu": "4294967295",
    "bi": "-9223372036854775808",
    "bu": "18446744073709551615",
    "f": "-1.5e10",
    "d": "3.141592653589793",
    "dc": "-99999999.99",
    "du": "123456789012345.54321",
    "b1": "1",
    "b13": "4097",
    "b16": "65535",
    "da": "'2024-02-29'",
    "dt": "'2024-02-29 23:59:59'",
    "dt6": "'1999-12-31 23:59:59.999999'",
    "ts": "'2024-02-29 12:00:00'",
    "ts3": "'2024-02-29 12:00:00.123'",
    "t": "'-838:59:59'",
    "t2": "'12:34:56.78'",
    "y": "2024",
    "c": "'grün'",
    "c255": "REPEAT('ü', 200)",
    "cl": "'ä'",
    "vc": "'varchar'",
    "vcu": "'uni'",
    "bn": "'a'",
    "vb": "REPEAT('b', 300)",
    "tt": "'tiny'",
    "tx": "'text ä'",
    "mt": "'medium'",
    "lt": "REPEAT('long', 100)",
    "tb": "x'00ff'",
    "bl": "REPEAT(x'01', 300)",
    "mb": "'m'",
    "lb": "'l'",
    "e": "'ä'",
    "s": "'x,ü'",
    "eu": "'ß'",
    "g": "ST_GeomFromText('LINESTRING(0 0, 1 2, 3 4)')",
    "p": "ST_GeomFromText('POINT(1 2)')",
    "big": "18446744073709551615",
    "u": "'123e4567-e89b-12d3-a456-426614174000'",
    "i6": "'2001:db8::1'",
    "i4": "'192.0.2.1'",
    "cb": "REPEAT('packed', 50)",
    "cv": "REPEAT('packed', 10)",
    "cvb": "REPEAT('packed', 10)",
    "inv": "9",
}
DOCUMENTS = (
    """'{"a": [1, -2, 3.5, null, true, "text"], "b": {"c": {"d": 18446744073709551615}}, "e": 70000}'""",
    "JSON_OBJECT('date', CAST('2024-01-01' AS DATE), 'time', CAST('12:34:56.5' AS TIME(1)), 'number', "
    "CAST(-12.345 AS DECIMAL(10, 3)), 'long', REPEAT('x', 300))",
)
VECTORS = {"mysql": "STRING_TO_VECTOR('[1, -2.5, 3e10, 0]')", "mariadb": "VEC_FromText('[1, -2.5, 3e10, 0]')"}


def record(server: Server, into: Path, folder: Path) -> None:
    """Have the server write its binlogs, and keep them in one file (a format description begins each)."""
    columns = [line.split()[0] for line in f"{ALL_TYPES}, {EXTRA_TYPES[server.flavor]}".split(", ")]
    columns = [column.strip() for column in columns]
    server.execute("CREATE DATABASE filled", "USE filled")
    create_all_types(server, "filled")
    values = {column: VALUES[column] for column in columns if column in VALUES}
    if "v" in columns:
        values["v"] = VECTORS[server.flavor.split("-")[0]]
    documents = DOCUMENTS if "j" in columns else ("",)
    for document in documents[: 1 if "mariadb" in server.flavor else 2]:
        given = values | ({"j": document} if document else {})
        server.execute(f"INSERT INTO filled ({', '.join(given)}) VALUES ({', '.join(given.values())})")
    server.execute("INSERT INTO filled (ti) VALUES (NULL), (1), (2)")
    for row_image in ("FULL", "MINIMAL", "NOBLOB"):
        server.execute(f"SET SESSION binlog_row_image = {row_image}")
        server.execute("UPDATE filled SET ti = COALESCE(ti, 1) / 2, tx = 'other', vc = NULL")
    server.execute("DELETE FROM filled", "SET SESSION binlog_row_image = FULL")
    server.flush_binlog()
    files = server.binlogs()[:-1] if server.binlogs() else []
    files = sorted({*files, *run_workload(server, folder / "load.txt")})
    content = b"".join(path.read_bytes()[4:] for path in files)
    with gzip.GzipFile(into, "wb", mtime=0) as file:
        file.write(content)


def main() -> None:
    """Record all servers."""
    CORPUS.mkdir(parents=True, exist_ok=True)
    for flavor in FLAVORS:
        with tempfile.TemporaryDirectory() as folder, get_server(flavor, OPTIONS[flavor]) as server:
            Path(folder).chmod(0o777)
            record(server, CORPUS / f"{flavor}.gz", Path(folder))
            print(flavor, (CORPUS / f"{flavor}.gz").stat().st_size)


if __name__ == "__main__":
    main()
