"""The schema of a query: all schema versions of all tables that it reads, merged by column name.

It is determined when the query starts. Later rows are converted to it: columns that it does not have are
dropped, missing columns are NULL, and a type that does not fit ends the query with an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from inspect import signature

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from engine.errors import EngineError
from engine.output.change_schema import METADATA_NAMES, ORIGIN_NAMES
from engine.output.column_types import common_type, plain_type
from engine.output.commit import SchemaKey, TableKey
from engine.output.reader import merged_schema

EVENTS: TableKey = ("", "")
SOURCE_NAME = "_source"
"""The column with the name of a row's output, if several are read as one."""


def query_schema(versions: Mapping[SchemaKey, pa.Schema], columns: Sequence[str] | None) -> pa.Schema:
    """The schema of a query over these schema versions: all columns, or `columns` in their order.

    The tables' own columns are all nullable, because a table without them may be added later. Metadata
    columns without nulls are not nullable, because Spark's null check costs as much as reading the value.
    Raises `EngineError` for a column that no table has, or whose types in several tables have no common type.
    """
    by_table: dict[TableKey, list[pa.Schema]] = {}
    for database, name, version in sorted(versions):
        by_table.setdefault((database, name), []).append(versions[database, name, version])
    found: dict[str, dict[pa.DataType, str]] = {}
    nullable: set[str] = set()
    for table, schemas in by_table.items():
        for field in merged_schema(schemas):
            if field.nullable or field.name not in METADATA_NAMES:
                nullable.add(field.name)
            found.setdefault(field.name, {}).setdefault(field.type, ".".join(table))
    names = sorted(found, key=METADATA_NAMES.__contains__)
    if EVENTS not in by_table:
        names += ORIGIN_NAMES
        found |= {name: {pa.string(): "every table"} for name in ORIGIN_NAMES}
    return _schema_of(names, found, nullable, columns)


def joined_schema(schemas: Mapping[str, pa.Schema], columns: Sequence[str] | None) -> pa.Schema:
    """The schema of a query over several outputs, given each one's by its name: `_source`, then all columns.

    Raises `EngineError` as `query_schema`, and if a table has a column `_source`.
    """
    found: dict[str, dict[pa.DataType, str]] = {SOURCE_NAME: {pa.string(): "every output"}}
    nullable: set[str] = set()
    for source, schema in schemas.items():
        for field in schema:
            if field.name.lower() == SOURCE_NAME:
                raise EngineError(
                    f"a table of {source} has a column `{field.name}`, which several outputs that are read "
                    "as one have for themselves: read this one alone"
                )
            if field.nullable:
                nullable.add(field.name)
            found.setdefault(field.name, {}).setdefault(field.type, source)
    added = (*METADATA_NAMES, *ORIGIN_NAMES)
    return _schema_of(sorted(found, key=lambda name: name in added), found, nullable, columns)


def _schema_of(
    names: Sequence[str],
    found: Mapping[str, Mapping[pa.DataType, str]],
    nullable: set[str],
    columns: Sequence[str] | None,
) -> pa.Schema:
    """Of the columns `found` those wanted, each with the common type of its types."""
    for name in columns or ():
        if name not in found:
            raise EngineError(f"there is no column `{name}` to read: the columns are {', '.join(names)}")
    fields = [pa.field(name, _common(name, found[name]), name in nullable) for name in columns or names]
    return _distinct(pa.schema(fields))


def _common(column: str, types: Mapping[pa.DataType, str]) -> pa.DataType:
    """The common type of all `types` of a column; the values are a table, or an output, for each type."""
    (common, first_table), *others = types.items()
    for data_type, table in others:
        wider = common_type(common, data_type)
        if wider is None:
            raise EngineError(
                f"column `{column}` is {common} in {first_table} and {data_type} in {table}, "
                "which have no common type: read these tables separately"
            )
        common = wider
    for data_type, table in types.items():
        # The common type of two others may hold no values of a third one.
        if common_type(data_type, common) != common:
            raise EngineError(
                f"column `{column}` is {data_type} in {table}, and the common type of the other tables is "
                f"{common}, which does not hold it: read these tables separately"
            )
    return common


def _distinct(schema: pa.Schema) -> pa.Schema:
    """The schema unchanged; raises `EngineError` if two names differ only in case, which Spark ignores."""
    seen: dict[str, str] = {}
    for name in schema.names:
        if name.lower() in seen:
            raise EngineError(
                f"columns `{seen[name.lower()]}` and `{name}` differ only in case, which Spark ignores: read "
                "the tables separately, or select one of them with the option `columns`"
            )
        seen[name.lower()] = name
    return schema


def check_readable(key: SchemaKey, version: pa.Schema, query: pa.Schema) -> None:
    """Raise `EngineError` if rows of this schema version cannot be converted to the query's without loss.

    Exact numbers are allowed even if the query's type is narrower: `output.reader` checks the values.
    """
    for field in version:
        index = query.get_field_index(field.name)
        if index < 0:
            continue
        given, wanted = plain_type(field.type), query.field(index).type
        if not _holds(wanted, given):
            database, table, _ = key
            raise EngineError(
                f"column `{field.name}` of {database}.{table} is now {given}, but the query reads {wanted}: "
                "start it again to read the new type"
            )


def check_letter_case(query: pa.Schema, known: Collection[str]) -> None:
    """Raise `EngineError` for a column that is `known`, but in other case: Spark would show it as NULL."""
    names = {*known, *METADATA_NAMES, *ORIGIN_NAMES, SOURCE_NAME}
    written = {name.lower(): name for name in names}
    for name in query.names:
        if name not in names and name.lower() in written:
            raise EngineError(
                f"the query's schema has a column `{name}`, which is `{written[name.lower()]}` in the rows: "
                "write its name in the same case"
            )


def _holds(wanted: pa.DataType, given: pa.DataType) -> bool:
    common = common_type(given, wanted)
    return common == wanted or (common == given and _is_exact(given) and _is_exact(wanted))


def _is_exact(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_decimal(data_type))


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark types of a query's schema."""
    return StructType([StructField(field.name, spark_type(field.type), field.nullable) for field in schema])


def spark_type(data_type: pa.DataType) -> DataType:
    """The Spark type of an Arrow type.

    PySpark 4.1 cannot convert a struct with the fields of a geometry, which it takes for its own type.
    """
    if pa.types.is_struct(data_type):
        return spark_schema(pa.schema(data_type.fields))
    return from_arrow_type(data_type, prefer_timestamp_ntz=True)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The exact Arrow schema that Spark expects of record batches for `schema`."""
    if "timezone" in signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)  # PySpark 4.0 and 4.1: always UTC.
