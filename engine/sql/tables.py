"""Tables as the statements need them: per column its name, its format and whether it can be written.

A data file's Arrow schema has the columns; the schema changes of the commit log add which of them are
generated, for the definition that was in force at a `_seq`.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence

import pyarrow as pa

from engine.binlog.table_definition import ColumnDefinition, TableDefinition
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.output.change_schema import METADATA_NAMES, own_name
from engine.output.commit_log import CommitLog
from engine.output.schema_history import table_history
from engine.output.sql_text import quoted_name
from engine.schema.changes import TableName
from engine.schema.sequences import is_sequence
from engine.sql.literals import ValueFormat, mysql_type, value_format


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """One column of a table's change rows."""

    output_name: str
    """Its name in the output."""
    name: str
    """Its own name, quoted."""
    format: ValueFormat
    generated: bool


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table with one definition."""

    name: TableName
    quoted: str
    columns: tuple[SqlColumn, ...]
    key: tuple[int, ...]
    """The columns of the primary key; empty without one."""
    enums: tuple[int, ...]
    """The ENUM columns."""
    is_sequence: bool
    """Whether it is a sequence of MariaDB, whose row can be written and not deleted."""

    @classmethod
    def of(cls, schema: pa.Schema, definition: TableDefinition | None, flavor: str) -> SqlTable:
        """The table of a data file's schema. Raises `EngineError` if its rows cannot become statements."""
        metadata = schema.metadata or {}
        name = TableName(metadata[b"database"].decode(), metadata[b"table"].decode())
        declared = {} if definition is None else {own_name(c.name): c for c in definition.columns}
        if flavor == "mariadb" and any(column.is_of_period for column in declared.values()):
            raise EngineError(
                f"{name} has system versioning, so its change rows contain rows of its history that no "
                "statement can write: leave the table out with --exclude-tables"
            )
        columns = tuple(
            _column(field, declared.get(field.name)) for field in schema if field.name not in METADATA_NAMES
        )
        numbered = [column.output_name for column in columns if column.output_name.startswith("@")]
        if numbered:
            raise EngineError(
                f"the columns of {name} have no names ({numbered[0]}): decode its binlog with --schema-file"
            )
        names = [column.output_name for column in columns]
        key = tuple(map(names.index, json.loads(metadata.get(b"primary_key", b"[]"))))
        quoted = f"{quoted_name(name.database)}.{quoted_name(name.table)}"
        enums = tuple(i for i, field in enumerate(schema) if mysql_type(field).startswith("enum"))
        counts = flavor == "mariadb" and definition is not None and is_sequence(definition.columns)
        return cls(name, quoted, columns, key, enums, counts)

    def indexes(self, output_names: Collection[str]) -> frozenset[int]:
        """The columns with these names in the output."""
        if not output_names:
            return frozenset()
        return frozenset(i for i, column in enumerate(self.columns) if column.output_name in output_names)


def _column(field: pa.Field, definition: ColumnDefinition | None) -> SqlColumn:
    is_escaped = field.name.endswith("_") and own_name(field.name[:-1]) == field.name
    return SqlColumn(
        field.name,
        quoted_name(field.name[:-1] if is_escaped else field.name),
        value_format(field),
        generated=definition is not None and definition.generated is not None,
    )


Elsewhere = Callable[[TableName], TableDefinition | None]
"""Where definitions come from that the output does not have: a server's catalog, or a schema file."""


def nowhere(name: TableName) -> TableDefinition | None:
    """No such place."""
    return None


class Definitions:
    """The definitions of all tables through time, from the commits `first` to `last` of a log."""

    def __init__(self, log: CommitLog, first: int, last: int, elsewhere: Elsewhere) -> None:
        """Raises `CommitLogError`."""
        self._changes = [*log.schema_state_at(first - 1).changes(), *log.schema_changes(first, last)]
        self._elsewhere = elsewhere
        self._histories: dict[TableName, tuple[Sequence[int], Sequence[TableDefinition | None]]] = {}

    def at(self, name: TableName, seq: int) -> TableDefinition | None:
        """The definition of the rows with this `_seq`; None if it is not known."""
        if name not in self._histories:
            self._histories[name] = self._history(name)
        numbers, definitions = self._histories[name]
        # What was learned first also holds for the rows before it.
        return definitions[max(bisect_left(numbers, seq) - 1, 0)]

    def _history(self, name: TableName) -> tuple[Sequence[int], Sequence[TableDefinition | None]]:
        numbers: list[int] = []
        definitions: list[TableDefinition | None] = []
        for entry in table_history(self._changes, name):
            for table in entry.change.tables:
                # Table maps do not say which columns are generated.
                better = self._elsewhere(name) if entry.change.source == "table map" else None
                numbers.append(entry.seq)
                definitions.append(better or table.definition)
        return (numbers, definitions) if numbers else ([0], [self._elsewhere(name)])
