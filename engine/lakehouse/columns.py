"""How a target's columns become those of its table's present definition, one ALTER TABLE at a time.

Columns are recognised by the format's own numbers, which stay when a column is renamed, so the next statement
follows from the target's present state alone: after a crash in between, the rest follows from what is there.
No IO.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.lakehouse.target import Alteration, TargetColumn
from engine.output.schema_state import CommittedChange
from engine.output.sql_text import quoted_name
from engine.spark.eras import described

SEQ, COPIES = "_seq", "_copies"
"""A target's columns beside those of its table: the newest change row that changed the row, and in a table
without a key how often it has the row."""

Widens = Callable[[str, str], bool]
"""Whether the format can change the first type to the second one."""


class UnfollowableError(EngineError):
    """The target cannot take over a change of its table."""


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """A column of the present definition."""

    name: str
    kind: str
    """Its type, as Spark shows it."""
    origin: str | None
    """The name that it had when the target's columns were last altered; None if it is new since."""
    filled: str | None = None
    """For a new column, the value that the rows get which are there, as SQL; None for NULL."""
    certain: bool = True
    """Whether rows have the type; if only the definition says so, a target may keep another one."""


def origins_of(columns: Sequence[TargetColumn], definition_names: Sequence[str]) -> dict[str, str | None]:
    """For each column of a target its name in the definition that it follows, by its identity."""
    known = {name.lower(): name for name in definition_names}
    return {str(column.identity): known.get(column.name.lower()) for column in columns}


def earlier_names(
    history: Sequence[CommittedChange], names: Sequence[str], table: str, version: int
) -> list[str | None]:
    """The names that the columns had in an earlier definition of the table; None for one that is new since.

    `names` are those at the end of the history, which contains that definition. Raises `UnfollowableError` if
    it is not known from which columns the present ones come, unless the table was emptied since.
    """
    found: list[str | None] = list(names)
    is_emptied = False
    for entry in reversed(history):
        is_emptied = is_emptied or bool(entry.change.emptied)
        if not entry.change.tables:
            continue
        change = entry.change.tables[0]
        if (str(change.name), change.version) == (table, version):
            return found
        if change.doubt is not None and is_emptied:
            return [None] * len(found)
        if change.doubt is not None:
            raise UnfollowableError(
                f"it is not known which columns of {table} came from which, because of {described(entry)}: "
                "take a snapshot of the table"
            )
        if change.columns is not None and change.previous_names is not None:
            names_then = (column.name for column in change.columns)
            before = dict(zip(names_then, change.previous_names, strict=True))
            found = [None if name is None else before[name] for name in found]
        elif change.renamed_from is None:
            found = [None] * len(names)
    return [None] * len(found)


def check_kinds(
    columns: Sequence[TargetColumn],
    wanted: Sequence[WantedColumn],
    origins: Mapping[str, str | None],
    widens: Widens,
) -> None:
    """Raise `UnfollowableError` if a column's type cannot become the wanted one."""
    by_origin = _by_origin(columns, origins)
    for column in wanted:
        held = by_origin.get(column.origin) if column.origin is not None else None
        if held is not None and _misfits(held, column, widens):
            raise UnfollowableError(
                f"column `{column.name}` is now {column.kind}, and the target's {held.kind} cannot "
                "become that"
            )


def next_alteration(
    columns: Sequence[TargetColumn],
    wanted: Sequence[WantedColumn],
    origins: Mapping[str, str | None],
    widens: Widens,
    *,
    keeps_dropped: bool,
    is_empty: bool,
) -> Alteration | None:
    """The next alteration; None if the target has the wanted columns.

    `origins` are those at the first alteration: a column that is not in them is a new one. With `is_empty`,
    columns that are in the way are removed, since no values are lost.
    """
    by_origin = _by_origin(columns, origins)
    by_name = {column.name.lower(): column for column in columns}
    for column in wanted:
        held = by_origin.get(column.origin) if column.origin is not None else None
        present = by_name.get(column.name.lower())
        if held is None:
            if present is None:
                return Alteration(f"ADD COLUMNS ({quoted_name(column.name)} {column.kind})", column.kind)
            if str(present.identity) in origins:
                return _out_of_the_way(present, origins, is_empty)
        elif held.name != column.name:
            if present is None:
                return _rename(held.name, column.name)
            return _out_of_the_way(present, origins, is_empty)
        elif _misfits(held, column, widens) and is_empty:
            return _drop(held.name)
        elif held.kind != column.kind and widens(held.kind, column.kind):
            return Alteration(f"ALTER COLUMN {quoted_name(held.name)} TYPE {column.kind}", column.kind)
    if not keeps_dropped or is_empty:
        needed = {column.origin for column in wanted}
        for identity, origin in origins.items():
            gone = next((each for each in columns if str(each.identity) == identity), None)
            if origin is not None and origin not in needed and gone is not None:
                return _drop(gone.name)
    return None


def _by_origin(columns: Sequence[TargetColumn], origins: Mapping[str, str | None]) -> dict[str, TargetColumn]:
    found = {}
    for column in columns:
        origin = origins.get(str(column.identity))
        if origin is not None:
            found[origin] = column
    return found


def _rename(name: str, new: str) -> Alteration:
    return Alteration(f"RENAME COLUMN {quoted_name(name)} TO {quoted_name(new)}")


def _drop(name: str) -> Alteration:
    return Alteration(f"DROP COLUMN {quoted_name(name)}")


def _out_of_the_way(column: TargetColumn, origins: Mapping[str, str | None], is_empty: bool) -> Alteration:
    """Rename a column that has another one's name: it gets its own later, or the table dropped it."""
    if is_empty and origins.get(str(column.identity)) is not None:
        return _drop(column.name)
    return _rename(column.name, f"{column.name}__{column.identity}")


def _misfits(held: TargetColumn, wanted: WantedColumn, widens: Widens) -> bool:
    """Whether the target's column cannot store the values, even with another type."""
    fits = held.kind == wanted.kind or widens(held.kind, wanted.kind) or holds(held.kind, wanted.kind)
    return wanted.certain and not fits


INTEGERS = ("tinyint", "smallint", "int", "bigint")
"""The narrowest first."""


def holds(kind: str, narrower: str) -> bool:
    """Whether a column of a type stores all values of another one as they are."""
    if kind in INTEGERS and narrower in INTEGERS:
        return INTEGERS.index(kind) >= INTEGERS.index(narrower)
    if kind.startswith("decimal") and narrower.startswith("decimal"):
        (precision, scale), (others, other_scale) = map(precision_and_scale, (kind, narrower))
        return scale >= other_scale and precision - scale >= others - other_scale
    if kind.startswith("decimal") and narrower in INTEGERS:
        precision, scale = precision_and_scale(kind)
        return precision - scale >= {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}[narrower]
    return (kind, narrower) in {("double", "float"), ("timestamp_ntz", "date"), ("variant", "string")}


def precision_and_scale(kind: str) -> tuple[int, int]:
    """Of `decimal(10,2)`, as Spark shows it."""
    precision, scale = kind.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)
