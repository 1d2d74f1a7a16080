"""Reads tables with connectorx into Arrow tables in memory: URI CONNECTIONS TABLE...; prints the rows.

One table is divided by its column `id` into as many parts as there are connections; of several tables each is
read over one connection, as many at a time as there are connections.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import connectorx


def main() -> None:
    uri, connections, *tables = sys.argv[1:]
    count = int(connections)
    if len(tables) == 1:
        rows = [read(uri, tables[0], count)]
    else:
        with ThreadPoolExecutor(count) as pool:
            rows = list(pool.map(lambda table: read(uri, table, 1), tables))
    print(json.dumps({"rows": sum(rows)}))


def read(uri: str, table: str, connections: int) -> int:
    parts = {"partition_on": "id", "partition_num": connections} if connections > 1 else {}
    read = connectorx.read_sql(uri, f"SELECT * FROM {table}", return_type="arrow", **parts)
    return int(read.num_rows)


main()
