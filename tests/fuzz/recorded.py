"""`python -m tests.fuzz.recorded --server mariadb-11.8 FILE …`: recorded binlogs beside the server's tool.

The binlogs are those of any workload; most telling are the ones that a server writes while it runs its own
test suite, with `binlog_row_metadata=FULL`. Of each file, every row value is compared with what `mysqlbinlog`
prints, and the columns in every table map with the definition that the statements before it have led to. A
line of JSON says of each file how much was compared, and what differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CalledProcessError

from engine.binlog.events.management import Format
from engine.binlog.events.statements import Query
from engine.binlog.files import read_events
from engine.binlog.position import BinlogPosition
from engine.binlog.table_map import TableMap
from engine.config.decode_options import DecodeOptions
from engine.decode.inspect.event_stream import decode_all as decode_events
from engine.errors import EngineError
from engine.schema.model import SchemaModel
from tests.servers import FLAVORS
from tests.servers.installations import installation
from tests.support.batches import decode_all, events_of, feed
from tests.support.printed_values import as_printed, printed_rows
from tests.support.shown_rows import ShownRow, shown_rows
from tests.support.transaction_pictures import batcher

_MAGIC = b"\xfebin"
_MOST_SHOWN = 5


@dataclass
class Report:
    """What was compared of a file, and what differs."""

    file: str
    rows: int = 0
    values: int = 0
    rolls_back: bool = False
    """Whether a statement takes rows back, so that the batches have fewer than the events."""
    table_maps: Counter[str] = field(default_factory=Counter)
    """`compared` with a definition; or the table was `unknown` or `unsure`."""
    differences: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    """The first ones."""

    def differs(self, kind: str, example: str) -> None:
        self.differences[kind] += 1
        if self.differences[kind] <= _MOST_SHOWN:
            self.examples.append(f"{kind}: {example}")


def compare_definitions(path: Path, server: str, report: Report) -> None:
    """Each table map with the definition in force, which follows from the statements alone."""
    model = SchemaModel("mariadb" if "mariadb" in server else "mysql")
    version = ""
    events = ((path.name, position, event) for position, event in read_events(path))
    for placed in decode_events(events, catalog=lambda database, table: None):
        body, here = placed.event.body, BinlogPosition(path.name, placed.position)
        if isinstance(body, Format):
            version = body.server_version
        elif isinstance(body, Query):
            model.execute(body, version, here)
            report.rolls_back = report.rolls_back or body.statement.upper().startswith("ROLLBACK")
        elif isinstance(body, TableMap):
            name = body.database, body.table
            definition = model.find(*name)
            if definition is None:
                report.table_maps["unknown" if model.doubt(*name) is None else "unsure"] += 1
                continue
            report.table_maps["compared"] += 1
            reason = body.mismatch(definition.columns)
            if reason is not None:
                report.differs("definition", f"at {here}: {'.'.join(name)}: {reason}")
                model.mark_unsure(*name, reason, here)


def compare_values(path: Path, server: str, ours: list[ShownRow], report: Report) -> None:
    """Each value with the tool's. An empty ENUM may be a member or none: the tool has its number."""
    mariadb = "mariadb" in server
    # Transactions of a test suite need not be in the order of their GTIDs.
    options = ("--skip-gtid-strict-mode",) if mariadb else ()
    printed = printed_rows(installation(server).tool("mysqlbinlog"), path, *options)
    if len(ours) != len(printed):
        report.differs("rows", f"{len(ours)}, the tool has {len(printed)} (it prints no geometries)")
        return
    for (table, _, values, columns), row in zip(ours, printed, strict=True):
        carried = {number for number, column in enumerate(columns, 1) if column.name in values}
        # MariaDB's tool doubles backticks in names.
        if row.table.replace("``", "`") != table.replace("``", "`") or (
            row.complete and row.values.keys() != carried
        ):
            report.differs(
                "row", f"{table} with columns {carried}, the tool has {row.table} with {row.values}"
            )
            continue
        for number, (text, printed_type) in row.values.items():
            column = columns[number - 1]
            value = values[column.name]
            if printed_type.startswith("ENUM") and value == "":
                continue
            try:
                own = as_printed(value, column, printed_type, mariadb)
            except (KeyError, ValueError) as error:
                own = f"not in the tool's notation ({error!r})"
            report.values += own is not None
            if own not in (None, text):
                report.differs("value", f"{table}.{column.name} is {own}, the tool has {text}")


def compare_batches(path: Path, report: Report) -> None:
    """The number of rows that come out of batches with that of the events."""
    stream = b"".join(events_of(path))
    decoded = decode_all(list(feed(batcher(marker=None), stream, [])), DecodeOptions())
    if decoded.error is not None:
        report.differs("batches", decoded.error)
    rows = sum(len(rows) for table, rows in decoded.rows.items() if table)
    if rows > report.rows or (rows < report.rows and not report.rolls_back):
        report.differs("batches", f"{rows} rows, the events have {report.rows}")


def compare(paths: list[Path], server: str) -> Iterator[Report]:
    """A report of each binlog file."""
    for path in paths:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                continue
        report = Report(path.name)
        try:
            compare_definitions(path, server, report)
            rows = list(shown_rows(path, {}))
            report.rows = len(rows)
            compare_values(path, server, rows, report)
            compare_batches(path, report)
        except EngineError as error:
            report.differs("error", str(error))
        except CalledProcessError as error:
            report.differs("tool", error.stderr.decode("utf-8", "replace"))
        yield report


def main() -> int:
    """Exit code 1 if anything differs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--server", choices=FLAVORS, required=True, help="whose tool reads the files")
    parser.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    differences: Counter[str] = Counter()
    for report in compare(options.files, options.server):
        print(json.dumps(vars(report), ensure_ascii=False), flush=True)
        differences += report.differences
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
