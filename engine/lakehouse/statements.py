"""The statements that change a target's rows: one MERGE per range, with and without a key. No IO."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from engine.lakehouse.columns import COPIES, SEQ
from engine.lakehouse.target import literal
from engine.output.sql_text import quoted_name

_GONE = "s._change_type IN ('delete', 'update_preimage')"
"""An update preimage is the newest row of its key only if the update changed the key."""


def merge_rows(
    target: str,
    source: str,
    keys: Sequence[str],
    columns: Sequence[str],
    *,
    may_be_null: Collection[str] = (),
    variants: Collection[str] = (),
    partial: bool = False,
) -> str:
    """MERGE the newest rows of each key (`changes.newest_rows`, or with `partial` `newest_values`).

    `may_be_null` are columns of the key that may be NULL, since dates that no calendar has are; the others
    are compared with `=`, which joins faster. `variants` are columns that the source has as JSON text.
    """
    same = " AND ".join(
        f"t.{column} {'<=>' if name in may_be_null else '='} s.{column}"
        for name, column in zip(keys, map(quoted_name, keys), strict=True)
    )
    values = {name: _value(name, name in variants) for name in columns}
    updated = values | {SEQ: f"s.{SEQ}"}
    inserted = values | {SEQ: f"s.{SEQ}"}
    if partial:
        for name in columns:
            if name not in keys:
                lacks = f"array_contains(s._absent_columns, {literal(name)})"
                updated[name] = f"CASE WHEN {lacks} THEN t.{quoted_name(name)} ELSE {values[name]} END"
        complete = f"CASE WHEN size(s._absent_columns) = 0 THEN s.{SEQ} ELSE raise_error({_INCOMPLETE}) END"
        inserted[SEQ] = complete
    assignments = ", ".join(f"t.{quoted_name(name)} = {value}" for name, value in updated.items())
    return (
        f"MERGE INTO {target} t USING {source} s ON {same} "
        f"WHEN MATCHED AND s.{SEQ} > t.{SEQ} AND {_GONE} THEN DELETE "
        f"WHEN MATCHED AND s.{SEQ} > t.{SEQ} THEN UPDATE SET {assignments} "
        f"WHEN NOT MATCHED AND NOT {_GONE} THEN {_insert(inserted)}"
    )


_INCOMPLETE = literal(
    "an update without all columns is about a row that the target does not have: the output lacks the "
    "table's first rows, so take a snapshot of the table"
)


def merge_counts(target: str, source: str, columns: Sequence[str], *, generated: Collection[str] = ()) -> str:
    """MERGE the counted rows of a table without a key (`changes.counted_rows`).

    Columns that are `generated` follow from the others, by which rows are compared.

    A number may be negative until a snapshot, whose rows and the changes to them come in any order, is
    complete.
    """
    compared = [quoted_name(name) for name in columns if name not in generated]
    same = " AND ".join(f"t.{name} <=> s.{name}" for name in compared)
    inserted = {name: f"s.{quoted_name(name)}" for name in (*columns, SEQ, COPIES)}
    return (
        f"MERGE INTO {target} t USING {source} s ON {same} "
        f"WHEN MATCHED AND t.{COPIES} + s.{COPIES} = 0 THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET t.{COPIES} = t.{COPIES} + s.{COPIES}, t.{SEQ} = s.{SEQ} "
        f"WHEN NOT MATCHED THEN {_insert(inserted)}"
    )


def fill(target: str, values: dict[str, str]) -> str:
    """UPDATE all rows with values, given as SQL by column."""
    assignments = ", ".join(f"{quoted_name(name)} = {value}" for name, value in values.items())
    return f"UPDATE {target} SET {assignments}"


def _insert(values: dict[str, str]) -> str:
    names = ", ".join(map(quoted_name, values))
    return f"INSERT ({names}) VALUES ({', '.join(values.values())})"


def _value(name: str, is_variant: bool) -> str:
    return f"parse_json(s.{quoted_name(name)})" if is_variant else f"s.{quoted_name(name)}"
