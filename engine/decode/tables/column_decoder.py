"""Column decoders: what columns of one kind have in common, whatever their names and tables, computed once.

The tables of a server have thousands of columns, but few kinds of them. A stream begins with tables that were
not seen before, so what each column takes then is time until the first rows.
"""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa

from engine.binlog.column import Column
from engine.binlog.type_names import type_name
from engine.dataclass import dataclass
from engine.decode.arrow.codec import Codec, Options
from engine.decode.columns import codec_for
from engine.decode.tables.table_plan import column_plan

_MOST_KINDS = 4096
"""Kinds that are kept; a stream with more of them works, but computes some of them again."""


@dataclass(frozen=True, eq=False)
class ColumnDecoder:
    """How to decode the columns of one kind."""

    codec: Codec
    metadata: pa.KeyValueMetadata
    """Of the column's field in the schema: MySQL's name of the type."""

    @cached_property
    def plan(self) -> bytes:
        """See `column_plan`."""
        return column_plan(self.codec)

    def field(self, name: str) -> pa.Field:
        """The field of a column of that name in the schema of its table's files."""
        return pa.field(name, self.codec.arrow_type, metadata=self.metadata)


class ColumnDecoders:
    """The column decoders of all kinds seen."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._decoders: dict[tuple[object, ...], ColumnDecoder] = {}

    def find(self, column: Column) -> ColumnDecoder:
        """That of a column. Raises `EngineError`, naming the column, if its type cannot be decoded."""
        kind = column.kind
        found = self._decoders.get(kind)
        if found is None:
            if len(self._decoders) == _MOST_KINDS:
                self._decoders.clear()
            codec = codec_for(column, self._options)
            metadata = pa.KeyValueMetadata({"mysql_type": type_name(column)})
            found = self._decoders[kind] = ColumnDecoder(codec, metadata)
        return found
