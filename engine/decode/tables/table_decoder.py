"""Table decoders: everything that depends on one definition of one table, computed once and cached.

A table map that has not been seen before (with the catalog's columns, if the batch has them) becomes a
`TableDecoder`: a codec per column, the cell widths for the walk, the Arrow schema. Servers repeat their table
maps in every transaction, so this module does not need to be fast.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property

import pyarrow as pa

from engine.binlog.column import Column
from engine.binlog.event_types import HEADER_LENGTH
from engine.binlog.field_types import FieldType
from engine.binlog.format_description import FormatDescription
from engine.binlog.table_definition import ColumnDefinition, table_key, unpack
from engine.binlog.table_map import TableMap
from engine.config.table_filter import TableFilter
from engine.dataclass import dataclass
from engine.decode.arrow.codec import Options
from engine.decode.arrow.record_message import message_layout
from engine.decode.arrow.shape import Shape, shape_of
from engine.decode.rows.walked_tables import RowLayout
from engine.decode.tables.column_decoder import ColumnDecoder, ColumnDecoders
from engine.decode.tables.table_plan import TablePlan
from engine.errors import EngineError
from engine.output.change_schema import METADATA_FIELDS, own_name, transit_schema

_TABLE_ID_BYTES = 6
_METADATA_SHAPE = Shape.sum(shape_of(field.type) for field in transit_schema(pa.schema(METADATA_FIELDS)))
_MAX_DECODERS = 4096
"""Number of cached definitions; a stream with more of them works, but computes some of them again."""


@dataclass(frozen=True)
class TableDecoder:
    """How to decode the rows of one table definition."""

    database: str
    table: str
    names: tuple[str, ...]
    columns: tuple[ColumnDecoder, ...]
    layout: RowLayout
    json_columns: tuple[int, ...]
    """Indexes of the columns that MySQL stores as binary JSON."""
    schema: pa.Schema
    """The schema of the table's files: its own columns, then the metadata columns."""
    schema_bytes: bytes

    @cached_property
    def plan(self) -> TablePlan:
        """How kernels build its record batches in transit to the sink (see `engine.output.change_schema`)."""
        shape = Shape.sum([_METADATA_SHAPE, *(column.codec.shape for column in self.columns)])
        layout = message_layout(shape, lambda: transit_schema(self.schema))
        return TablePlan.of(layout, self.names, [column.plan for column in self.columns])


def _primary_key(
    table_map: TableMap, columns: tuple[Column, ...], fitting: tuple[ColumnDefinition, ...] | None
) -> list[str]:
    if table_map.optional.primary_key:
        return [columns[index].name for index, _ in table_map.optional.primary_key]
    parts = sorted((info.primary_key, info.name) for info in fitting or () if info.primary_key is not None)
    return [name for _, name in parts]


def json_columns(columns: Sequence[Column]) -> tuple[int, ...]:
    """Indexes of the columns that MySQL stores as binary JSON."""
    return tuple(index for index, column in enumerate(columns) if column.type_code == FieldType.JSON)


def make_decoder(
    table_map: TableMap, catalog: tuple[ColumnDefinition, ...] | None, kinds: ColumnDecoders
) -> TableDecoder:
    """The decoder of a table map. Raises `EngineError` for columns that cannot be named or decoded."""
    fitting = table_map.fitting(catalog)
    columns = table_map.columns_with(fitting)
    decoders = tuple([kinds.find(column) for column in columns])
    names = tuple([own_name(column.name) for column in columns])
    fields = [decoder.field(name) for decoder, name in zip(decoders, names, strict=True)]
    metadata = {"database": table_map.database, "table": table_map.table}
    key = _primary_key(table_map, columns, fitting)
    if key:
        metadata["primary_key"] = json.dumps([own_name(name) for name in key], ensure_ascii=False)
    schema = pa.schema([*fields, *METADATA_FIELDS], metadata=metadata)
    return TableDecoder(
        database=table_map.database,
        table=table_map.table,
        names=names,
        columns=decoders,
        layout=RowLayout.of([decoder.codec.width for decoder in decoders]),
        json_columns=json_columns(columns),
        schema=schema,
        schema_bytes=schema.serialize().to_pybytes(),
    )


class TableDecoders:
    """The decoders of all table definitions seen, by the bytes that define them and the server's version."""

    def __init__(self, options: Options, table_filter: TableFilter, names_needed: bool = False) -> None:
        self._options = options
        self._kinds: dict[Options, ColumnDecoders] = {}
        self._filter = table_filter
        self._names_needed = names_needed
        self._names: dict[bytes, str] = {}
        self._decoders: dict[tuple[bytes, bytes | None, str], TableDecoder | None] = {}

    def find(
        self, event: bytes, description: FormatDescription, packed_columns: Mapping[str, bytes]
    ) -> TableDecoder | None:
        """The decoder for a TABLE_MAP_EVENT (without checksum); None for a table that is not wanted.

        Raises `EventError` for a malformed event, `EngineError` for columns that cannot be named or decoded.
        """
        definition = event[HEADER_LENGTH + _TABLE_ID_BYTES :]
        name = self._names.get(definition)
        if name is not None:
            key = (definition, packed_columns.get(name), description.server_version)
            if key in self._decoders:
                return self._decoders[key]
        if len(self._decoders) >= _MAX_DECODERS:
            self._decoders.clear()
            self._names.clear()
        table_map = TableMap.parse(event, description)
        name = table_key(table_map.database, table_map.table)
        entry = packed_columns.get(name)
        decoder = None
        if self._filter.wants(table_map.database, table_map.table):
            if self._names_needed and table_map.needs_catalog and entry is None:
                raise EngineError(
                    f"names or character sets of {table_map.database}.{table_map.table}'s columns are not in "
                    "the binlog, and the engine did not query them, because compressed transactions before "
                    "it in the file had them: start the engine again"
                )
            catalog = None if entry is None else unpack(entry)
            decoder = make_decoder(table_map, catalog, self._kinds_on(description))
        self._names[definition] = name
        self._decoders[definition, entry, description.server_version] = decoder
        return decoder

    def _kinds_on(self, description: FormatDescription) -> ColumnDecoders:
        options = self._options.on(description)
        return self._kinds.setdefault(options, ColumnDecoders(options))
