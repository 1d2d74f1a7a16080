"""The table definitions in force at the stream's position, and where they come from.

DDL statements change the model as the stream passes them. A table map that lacks names is compared with the
model's definition; if that is missing, doubtful or does not fit, it is replaced by the first of these that is
certain: a proof from the server, the user's schema file. Else the table's columns are numbered, or the stream
stops. Table maps with full metadata are learned, so that later statements have a definition to change; of
MariaDB's tables with generated columns or system versioning, which they do not show, the server's definition
is learned, and of those in the user's schema file that one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from engine.binlog.events.statements import Query
from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import TableDefinition, pack, table_key
from engine.binlog.table_map import TableMap
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.net.batching.pending_changes import PendingChanges
from engine.schema.changes import SchemaChange, Source, TableName
from engine.schema.from_table_map import definition_of
from engine.schema.model import SchemaModel

Here = Callable[[], BinlogPosition]
"""Returns the stream's position."""


class Proofs(Protocol):
    """Definitions that the server's catalog proves for the stream's position."""

    def prove(self, table_map: TableMap) -> TableDefinition | str:
        """The definition, or why the server cannot prove one, in words. Raises `EngineError`."""

    def prove_ahead(self, table_maps: Mapping[int, TableMap]) -> Mapping[int, TableDefinition]:
        """The same with one question for many tables; the result lacks those that are not proven."""

    def databases(self) -> Mapping[str, str]:
        """Database → its default collation, for those whose default is proven. Raises `EngineError`."""

    def with_generated_columns(self) -> Collection[TableName]:
        """The tables of a MariaDB server that have generated columns or row versions now.

        Raises `EngineError`.
        """

    def passed(self, query: Query, server_version: str, flavor: str, position: BinlogPosition) -> None:
        """The stream comes to a statement. Raises `EngineError` if it disproves a definition."""

    def awaits_proof(self, position: BinlogPosition) -> bool:
        """Whether a definition that was proven is only assumed up to there."""


@dataclass(frozen=True, slots=True)
class Definitions:
    """Where definitions come from other than from the stream."""

    proofs: Proofs | None = None
    """None where no server can be asked."""
    schema_file: Mapping[TableName, TableDefinition] | None = None
    """The user's definitions; None without any."""
    charsets_are_missing: bool = True
    """Table maps do not contain character sets, so that the defaults of databases are always needed."""
    numbers_unknown: bool = False
    """Columns without certain names are numbered; otherwise the stream stops."""


class SchemaFollower:
    """Follows one stream with `model`. `flavor`: `mysql` or `mariadb`."""

    def __init__(self, model: SchemaModel, flavor: str, sources: Definitions, here: Here) -> None:
        self._model = model
        self._flavor = flavor
        self._sources = sources
        self._here = here
        self._changes = PendingChanges()
        self.numbered: set[str] = set()
        """`table_key` of the tables whose columns are numbered; a statement may make them certain."""
        self._databases_are_read = False
        self._generating: Collection[TableName] | None = None
        """The answer of `Proofs.with_generated_columns`, once it was needed."""

    def execute(self, query: Query, server_version: str, position: BinlogPosition) -> SchemaChange | None:
        """Change the model by a statement; returns what it changed, for `note`, None without a change.

        Raises `EngineError` if it disproves a definition that was assumed.
        """
        if self._sources.proofs is not None:
            self._sources.proofs.passed(query, server_version, self._flavor, position)
        if self._sources.charsets_are_missing:
            self._read_databases()
        return self._model.execute(query, server_version, position, self._read_databases)

    def note(self, change: SchemaChange | None) -> None:
        """Keep a change for the next batch."""
        if change is not None:
            self._changes.note(change)

    def take_changes(self, reached: BinlogPosition) -> tuple[SchemaChange, ...]:
        """The changes for a batch that ends at that position."""
        return self._changes.take(reached)

    def awaits_proof(self, position: BinlogPosition) -> bool:
        """Whether a definition that was described is only assumed up to there."""
        return self._sources.proofs is not None and self._sources.proofs.awaits_proof(position)

    def learn_from_server(self, definition: TableDefinition, position: BinlogPosition) -> None:
        """A definition that the server proves for the start of the stream."""
        self.note(self._model.learn("server", position, definition))

    def lose_statements(self, reason: str) -> None:
        """A part of the stream was dropped, in which statements may have been: no definition is certain."""
        for table in list(self._model.tables()):
            self.note(self._model.mark_unsure(table.database, table.table, reason, self._here()))

    def describe(self, table_map: TableMap) -> bytes | None:
        """The packed columns of a table map's table; None if it contains all that is known of them.

        Raises `EngineError` if the columns cannot be named, unless they are then numbered.
        """
        known = self._model.find(table_map.database, table_map.table)
        misfit = None if known is None else table_map.mismatch(known.columns)
        if known is not None and misfit is None:
            return pack(known.columns) if self._needs_definition(table_map) else None
        if not self._needs_definition(table_map):
            generating = self._with_generated_columns(table_map)
            given = (self._sources.schema_file or {}).get(TableName(table_map.database, table_map.table))
            if generating is not None:
                self._learned("server", generating)
            elif given is not None and table_map.mismatch(given.columns) is None:
                self._learned("schema file", given)
            else:
                self.note(self._model.learn("table map", self._here(), definition_of(table_map)))
            return None
        doubt = misfit or self._model.doubt(table_map.database, table_map.table)
        return self._settle(table_map, doubt)

    def describe_ahead(self, table_maps: Mapping[int, TableMap]) -> dict[int, bytes | None]:
        """The same for many tables, by the keys of `table_maps`, with one question to the server.

        Tables whose columns are not certain are missing in the result.
        """
        described: dict[int, bytes | None] = {}
        asked: dict[int, TableMap] = {}
        for key, table_map in table_maps.items():
            known = self._model.find(table_map.database, table_map.table)
            if not self._needs_definition(table_map):
                described[key] = self.describe(table_map)
            elif known is None:
                asked[key] = table_map
            elif table_map.mismatch(known.columns) is None:
                described[key] = pack(known.columns)
        if self._sources.proofs is not None and asked:
            with contextlib.suppress(EngineError):
                for key, proven in self._sources.proofs.prove_ahead(asked).items():
                    described[key] = self._learned("server", proven)
        return described

    def _read_databases(self) -> None:
        """Once, before a statement: the defaults of databases decide what new tables and columns are."""
        proofs = self._sources.proofs
        if proofs is not None and not self._databases_are_read:
            self._databases_are_read = True
            # Without the answer, tables that depend on it are unsure.
            with contextlib.suppress(EngineError):
                for database, collation in proofs.databases().items():
                    if not self._model.knows_database(database):
                        self.note(self._model.learn_database("server", self._here(), database, collation))

    def _settle(self, table_map: TableMap, doubt: str | None) -> bytes | None:
        proofs, name = self._sources.proofs, TableName(table_map.database, table_map.table)
        reason = doubt or "the stream has not defined it"
        if proofs is not None:
            proven = proofs.prove(table_map)
            if isinstance(proven, TableDefinition):
                return self._learned("server", proven)
            reason = proven
        given = (self._sources.schema_file or {}).get(name)
        if given is not None:
            misfit = table_map.mismatch(given.columns)
            if misfit is None:
                return self._learned("schema file", given)
            reason = f"{reason}; in the schema file, {misfit}"
        if not table_map.needs_catalog and proofs is None:
            # A file whose types may be MariaDB's UUID or INET: they are read as the binlog has them.
            self.note(self._model.learn("table map", self._here(), definition_of(table_map)))
            return None
        if self._sources.numbers_unknown:
            if doubt is None or self._model.find(name.database, name.table) is not None:
                self.note(self._model.mark_unsure(name.database, name.table, reason, self._here()))
            self.numbered.add(table_key(name.database, name.table))
            return None
        raise EngineError(_sentence(table_map, reason))

    def _with_generated_columns(self, table_map: TableMap) -> TableDefinition | None:
        """The proven definition of a MariaDB table that has some; no table map says so.

        Its row images may lack these columns (`engine.spark.table_rows.TableRows.generated_names`).
        """
        proofs = self._sources.proofs
        if self._flavor != "mariadb" or proofs is None:
            return None
        if self._generating is None:
            try:
                self._generating = proofs.with_generated_columns()
            except EngineError as error:
                if error.retryable:
                    raise
                # The account may not ask; the table map has what rows need.
                self._generating = ()
        if TableName(table_map.database, table_map.table) not in self._generating:
            return None
        proven = proofs.prove(table_map)
        return proven if isinstance(proven, TableDefinition) else None

    def _learned(self, source: Source, definition: TableDefinition) -> bytes:
        self.note(self._model.learn(source, self._here(), definition))
        return pack(definition.columns)

    def _needs_definition(self, table_map: TableMap) -> bool:
        """Whether the table map lacks names, or types: MariaDB's binlogs never contain some of them."""
        return table_map.needs_catalog or (self._flavor == "mariadb" and table_map.hides_types)


def _sentence(table_map: TableMap, reason: str) -> str:
    name = f"{table_map.database}.{table_map.table}"
    remedy = ""
    if table_map.lacks_names:
        problem = f"the columns of {name} cannot be named"
        remedy = "; binlog_row_metadata=FULL on the server prevents this"
    elif added := table_map.optional.added_collations:
        numbers = ", ".join(map(str, sorted(added)))
        problem = f"the character set of an added collation ({numbers}) of {name}'s columns is not certain"
    else:
        problem = f"the types of {name}'s columns are not certain (UUID, INET and VECTOR look like BINARY)"
    return (
        f"{problem} ({reason}): give a --schema-file that defines the table as it was then, continue with "
        f"--unknown-columns number, or start after the change{remedy}"
    )
