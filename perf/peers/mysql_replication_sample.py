"""Reads the first rows of a binlog with mysql-replication in a separate process; prints JSON.

Arguments: host, port, user, binlog file, rows to read.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
from contextlib import closing

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

_SERVER_ID = 4_000_002


def sample(host: str, port: int, user: str, file: str, wanted: int) -> dict[str, float]:
    """The number of rows read, and the time taken; the time before the first event is start-up."""
    begun = time.perf_counter()
    # Suppresses the warning that column names are not in the binlog; without them it has less to do.
    logging.getLogger("pymysqlreplication").setLevel(logging.ERROR)
    stream = BinLogStreamReader(
        connection_settings={"host": host, "port": port, "user": user, "passwd": ""},
        server_id=_SERVER_ID,
        log_file=file,
        log_pos=4,
        resume_stream=True,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
    )
    with closing(stream):
        events = iter(stream)
        first = next(events, None)
        before = resource.getrusage(resource.RUSAGE_SELF)
        started = time.perf_counter()
        rows = 0
        for event in events if first is not None else ():
            rows += len(event.rows)
            if rows >= wanted:
                break
        ended = time.perf_counter()
        after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "rows": rows,
        "seconds": ended - started,
        "start_up_seconds": started - begun,
        "user_seconds": after.ru_utime - before.ru_utime,
        "system_seconds": after.ru_stime - before.ru_stime,
    }


if __name__ == "__main__":
    host, port, user, file, wanted = sys.argv[1:]
    print(json.dumps(sample(host, int(port), user, file, int(wanted))))
