"""The batcher follows statements: definitions, where batches are cut, and what their headers say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from engine.binlog import event_types as types
from engine.binlog.events.statements import Query
from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import ColumnDefinition, TableDefinition
from engine.binlog.table_map import TableMap
from engine.binlog.table_map_writer import write_table_map
from engine.config.decode_options import DecodeOptions
from engine.config.table_filter import TableFilter
from engine.errors import ConnectionFailed, EngineError
from engine.net.batching.batcher import Batcher
from engine.net.batching.outgoing_batch import OutgoingBatch
from engine.net.batching.schema_follower import Definitions, SchemaFollower
from engine.output.schema_state import CommittedChange, SchemaState
from engine.schema.changes import SchemaChange, TableName
from engine.schema.model import SchemaModel
from engine.schema.server_settings import ServerSettings
from tests.support.batches import decode_all, feed, packets_of
from tests.support.binlog_builder import PLAIN, Part, binlog, make_event
from tests.support.made_events import SIGNED_INT, gtid, image, integer, payload, query, rows, table_map, xid

CREATE = "CREATE TABLE t (a INT)"
HUGE = 17 << 20


@dataclass
class Server:
    """Proves definitions of tables, by name."""

    tables: dict[str, TableDefinition] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    asked_databases: int = 0
    failure: EngineError | None = None

    def prove(self, table_map: TableMap) -> TableDefinition | str:
        self.asked.append(table_map.table)
        return self.tables.get(table_map.table, "the server does not have the table any more")

    def prove_ahead(self, table_maps: Mapping[int, TableMap]) -> Mapping[int, TableDefinition]:
        return {}

    def databases(self) -> Mapping[str, str]:
        self.asked_databases += 1
        return {"shop": "utf8mb4_0900_ai_ci"}

    def with_generated_columns(self) -> set[TableName]:
        if self.failure is not None:
            raise self.failure
        return {TableName("shop", name) for name in self.tables}

    def passed(self, query: Query, server_version: str, flavor: str, position: BinlogPosition) -> None:
        pass

    def awaits_proof(self, position: BinlogPosition) -> bool:
        return False


def of(table: str, *names: str) -> TableDefinition:
    columns = tuple(ColumnDefinition(name, "int") for name in names)
    return TableDefinition("shop", table, columns)


def row(number: int, table: str = "t", value: int | None = None) -> list[Part]:
    """A transaction with a row in a table of one INT column."""
    cell = integer(number if value is None else value)
    return [
        gtid(number),
        query("BEGIN"),
        table_map(7, [SIGNED_INT], table=table),
        rows(types.WRITE_ROWS_EVENT, 7, 1, [image([cell])]),
        xid(),
    ]


def statement(number: int, text: str) -> list[Part]:
    return [gtid(number), query(text)]


def batches(
    parts: list[Part],
    sources: Definitions | None = None,
    model: SchemaModel | None = None,
    **options: Any,
) -> list[OutgoingBatch]:
    def here() -> BinlogPosition:
        return BinlogPosition("f", batcher.position)

    schema = SchemaFollower(model or SchemaModel("mysql"), "mysql", sources or Definitions(), here)
    batcher = Batcher(
        schema.describe,
        file="f",
        checksum_algorithm=1,
        describe_ahead=schema.describe_ahead,
        schema=schema,
        opens_compressed=True,
        **options,
    )
    return [*feed(batcher, packets_of(binlog(parts)), [])]


def changes(found: list[OutgoingBatch]) -> list[SchemaChange]:
    return [change for batch in found for change in batch.header.status.schema_changes]


def values(found: list[OutgoingBatch], table: str = "t") -> list[dict[str, int]]:
    return [
        {name: value for name, value in row.items() if name[0] != "_"}
        for row in decode_all(found).rows.get(table, [])
    ]


def test_rows_have_the_names_of_their_time() -> None:
    parts = [
        *(*statement(1, CREATE), *row(2)),
        *(*statement(3, "ALTER TABLE t CHANGE a b INT"), *row(4)),
        *(*statement(5, "RENAME TABLE t TO u"), *row(6, "u")),
    ]
    found = batches(parts)
    assert values(found) == [{"a": 2}, {"b": 4}]
    assert values(found, "u") == [{"b": 6}]
    assert [change.source for change in changes(found)] == ["statement"] * 3


@pytest.mark.parametrize("setting", [1, 2])
def test_statements_may_have_names_in_other_letter_case_than_table_maps(setting: int) -> None:
    parts = [
        *(*statement(1, "CREATE TABLE T (a INT)"), *row(2)),
        *(*statement(3, "ALTER TABLE T CHANGE a b INT"), *row(4)),
    ]
    found = batches(parts, model=SchemaModel("mysql", ServerSettings(lower_case_table_names=setting)))
    assert values(found) == [{"a": 2}, {"b": 4}]
    assert {str(table.name) for change in changes(found) for table in change.tables} == {"shop.t"}


def test_a_batch_ends_with_a_statement_that_changes_a_table() -> None:
    parts = [
        *statement(1, CREATE),
        *row(2),
        *statement(3, "TRUNCATE t"),
        *row(4),
        *statement(5, "CREATE USER x"),
    ]
    first, second, *_ = found = batches(parts)
    (created, emptied) = first.header.status.schema_changes
    assert (created.emptied, emptied.emptied) == ((), (TableName("shop", "t"),))
    assert emptied.statement == "TRUNCATE t"
    assert emptied.position.position < first.header.status.resume.position
    assert values([first]) == [{"a": 2}]
    assert values([second]) == [{"a": 4}]
    assert len(changes(found)) == 2


def manipulation(number: int, *texts: str) -> list[Part]:
    """A transaction of statements that change rows."""
    return [gtid(number), query("BEGIN"), *map(query, texts), xid()]


def marked(batch: OutgoingBatch) -> list[str]:
    """The tables that a batch says are changed by data manipulation."""
    changes = [each for each in batch.header.status.schema_changes if each.source == "data manipulation"]
    return [str(name) for change in changes for name in change.rewritten]


def test_data_manipulation_ends_no_batch_and_names_each_table_once() -> None:
    parts = [*statement(1, CREATE), *row(2)]
    for number in range(3, 300):
        parts += manipulation(number, "INSERT INTO t VALUES (1)", "UPDATE u SET a = 1")
    first, *others = batches([*parts, *row(300)])
    assert marked(first) == ["shop.t", "shop.u"]
    assert values([first]) == [{"a": 2}, {"a": 300}]
    assert not changes(others)


def test_a_batch_names_the_tables_of_its_own_statements() -> None:
    """A batch ends before a transaction that is open: its statements belong to the next batch."""
    parts = [*statement(1, CREATE), *manipulation(2, "UPDATE t SET a = 1"), *row(3)]
    open_part = [gtid(4), query("BEGIN"), query("UPDATE t SET a = 2")]
    late = [query("UPDATE u SET a = 3"), xid()]
    stream = packets_of(binlog([*parts, *open_part, *late]))
    cut = len(packets_of(binlog([*parts, *open_part])))
    schema = SchemaFollower(SchemaModel("mysql"), "mysql", Definitions(), lambda: BinlogPosition("f", 4))
    batcher = Batcher(schema.describe, file="f", checksum_algorithm=1, schema=schema)
    batcher.space()[:cut] = stream[:cut]
    first = [*batcher.received(cut), *batcher.flush()]
    assert len(first) == 1 and "shop.t" in marked(first[0])
    rest = stream[cut:]
    batcher.space()[: len(rest)] = rest
    second, *_ = [*batcher.received(len(rest)), *batcher.finish()]
    assert sorted(marked(second)) == ["shop.t", "shop.u"]


def test_a_table_that_gets_the_name_of_another_is_named_again() -> None:
    """The tables are not known before, so that their renames end no batch."""
    parts = [
        *manipulation(1, "INSERT INTO t VALUES (1)"),
        *(*statement(2, "RENAME TABLE t TO old"), *statement(3, CREATE)),
        *manipulation(4, "INSERT INTO t VALUES (1)"),
    ]
    (batch, *_) = batches(parts)
    state = SchemaState()
    state.add(CommittedChange(0, 0, 0, change) for change in batch.header.status.schema_changes)
    assert {str(name) for name in state.rewritten()} == {"shop.old", "shop.t"}


def test_data_manipulation_of_unwanted_tables_is_of_no_concern() -> None:
    parts = [*statement(1, CREATE), *manipulation(2, "UPDATE u SET a = 1"), *row(3)]
    parts += manipulation(4, "UPDATE t, u SET a = 1")
    found = batches(parts, decode=DecodeOptions(tables=TableFilter(("shop.t",))))
    assert [name for batch in found for name in marked(batch)] == ["shop.t"]


def test_rows_of_unwanted_tables_are_not_emptied_but_their_definitions_count() -> None:
    parts = [
        *(*statement(1, "CREATE TABLE ghost (a INT)"), *statement(2, CREATE)),
        *(*row(3, "ghost"), *statement(4, "TRUNCATE ghost")),
        *(*statement(5, "RENAME TABLE t TO old, ghost TO t"), *row(6)),
    ]
    found = batches(parts, decode=DecodeOptions(tables=TableFilter(("shop.t",))))
    assert [change.emptied for change in changes(found)] == [()] * len(changes(found))
    assert changes(found)[-1].rewritten == (TableName("shop", "t"),)
    names = {(table.name.table, table.outside) for change in changes(found) for table in change.tables}
    assert names == {("ghost", True), ("t", False), ("old", True)}
    assert values(found) == [{"a": 6}]


def test_the_server_is_asked_only_where_statements_say_nothing() -> None:
    server = Server({"known": of("known", "x")})
    parts = [*statement(1, CREATE), *row(2), *row(3, "known"), *row(4, "known")]
    found = batches(parts, Definitions(server))
    assert values(found, "known") == [{"x": 3}, {"x": 4}]
    assert server.asked == ["known"]
    assert [change.source for change in changes(found)] == ["server", "statement", "server"]


@pytest.mark.parametrize(
    ("are_missing", "column", "asked"),
    [(True, "a INT", 1), (False, "a INT", 0), (False, "a CHAR BINARY", 1), (False, "a ENUM('ä')", 1)],
)
def test_the_default_of_a_database_is_asked_for_where_it_matters(
    are_missing: bool, column: str, asked: int
) -> None:
    server = Server()
    parts = [*statement(1, f"CREATE TABLE t ({column})"), *statement(2, f"CREATE TABLE u ({column})")]
    found = batches(parts, Definitions(server, charsets_are_missing=are_missing))
    assert server.asked_databases == asked
    assert [change.source for change in changes(found)] == ["server"] * asked + ["statement"] * 2
    assert all(table.doubt is None for change in changes(found) for table in change.tables)


def test_a_definition_that_does_not_fit_is_replaced_by_a_proof() -> None:
    model = SchemaModel("mysql")
    model.learn("server", BinlogPosition("f", 4), of("t", "one", "two"))
    server = Server({"t": of("t", "one")})
    assert values(batches(row(1), Definitions(server), model)) == [{"one": 1}]


def test_the_order_of_what_settles_a_table() -> None:
    """A proof, the schema file, numbers, or an error."""
    file = {TableName("shop", "t"): of("t", "filed")}
    proof = Definitions(Server({"t": of("t", "proven")}), file, numbers_unknown=True)
    without = replace(proof, proofs=Server())
    assert values(batches(row(1), proof)) == [{"proven": 1}]
    assert values(batches(row(1), without)) == [{"filed": 1}]
    assert values(batches(row(1), replace(without, schema_file=None))) == [{"@1": 1}]
    with pytest.raises(EngineError, match=r"shop\.t cannot be named .*give a --schema-file"):
        batches(row(1), replace(without, schema_file=None, numbers_unknown=False))


def test_a_schema_file_that_does_not_fit_is_named() -> None:
    file = {TableName("shop", "t"): of("t", "one", "two")}
    with pytest.raises(EngineError, match="in the schema file, 2 columns"):
        batches(row(1), Definitions(None, file))


def test_numbers_end_with_a_statement_after_which_the_server_can_prove_names() -> None:

    class Later(Server):
        def prove(self, table_map: TableMap) -> TableDefinition | str:
            answer = super().prove(table_map)
            self.tables["t"] = of("t", "b")
            return answer

    later = Later()
    parts = [*row(1), *row(2), *statement(3, "ALTER TABLE t CHANGE a b INT"), *row(4)]
    found = batches(parts, Definitions(later, numbers_unknown=True))
    assert values(found) == [{"@1": 1}, {"@1": 2}, {"b": 4}]
    assert later.asked == ["t", "t"]


def test_a_table_that_a_compressed_transaction_creates() -> None:
    inner = [
        query("CREATE TABLE t (a INT) START TRANSACTION"),
        *row(1)[2:],
    ]
    assert values(batches([gtid(1), payload(inner), *row(2)])) == [{"a": 1}, {"a": 2}]


def test_a_statement_of_several_packets() -> None:
    parts = [*statement(1, CREATE + " COMMENT '" + "x" * HUGE + "'"), *row(2)]
    found = batches(parts)
    assert values(found) == [{"a": 2}]
    (change,) = changes(found)
    assert change.statement is not None and change.statement.startswith(CREATE)


COLUMN_NAMES = 4
"""The type of that field in the optional metadata of a table map."""
GENERATING = TableDefinition(
    "shop", "t", (ColumnDefinition("a", "int(11)"), ColumnDefinition("b", "int(11)", generated="stored"))
)


def described(
    server: Server | None, flavor: str = "mariadb", file: TableDefinition | None = None
) -> list[SchemaChange]:
    """The changes after a table map with names, which do not say that a column is generated."""
    sources = Definitions(server, None if file is None else {TableName(file.database, file.table): file})
    schema = SchemaFollower(SchemaModel(flavor), flavor, sources, lambda: BinlogPosition("f", 4))
    names = bytes([COLUMN_NAMES, 4]) + b"\1a\1b"
    event = make_event(types.TABLE_MAP_EVENT, write_table_map(GENERATING, 7, mariadb=True) + names)
    assert schema.describe(TableMap.parse(event, PLAIN)) is None
    return list(schema.take_changes(BinlogPosition("f", 1 << 40)))


def test_generated_columns_of_mariadb_come_from_the_server() -> None:
    server = Server({"t": GENERATING})
    (change,) = described(server)
    assert change.source == "server" and change.tables[0].columns == GENERATING.columns
    (change,) = described(server, "mysql")
    assert change.source == "table map"


def test_a_schema_file_says_more_than_a_table_map_with_names() -> None:
    (change,) = described(None, file=GENERATING)
    assert change.source == "schema file" and change.tables[0].columns == GENERATING.columns
    (change,) = described(None, file=of("t", "a"))
    assert change.source == "table map"


def test_without_an_answer_about_generated_columns_the_table_map_counts() -> None:
    (change,) = described(Server({"t": GENERATING}, failure=EngineError("SELECT command denied")))
    assert change.source == "table map"
    with pytest.raises(ConnectionFailed, match="gone away"):
        described(Server({"t": GENERATING}, failure=ConnectionFailed("the server has gone away")))
