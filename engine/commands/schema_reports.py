"""What the `schema` command shows, each report as text and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from textwrap import shorten
from typing import Any, Protocol

from engine.binlog.table_definition import ColumnDefinition
from engine.commands.definition_differences import Difference, differences, primary_key
from engine.commands.text_table import text_table
from engine.dataclass import dataclass
from engine.output.commit_times import shown_time
from engine.output.schema_state import CommittedChange
from engine.schema.changes import TableChange, TableName

_STATEMENT_SHOWN = 160
"""Characters of a statement in a text; JSON has all that the log has."""


class Report(Protocol):
    """What the command prints."""

    def text(self) -> str:
        """For a person."""

    def values(self) -> dict[str, Any]:
        """For JSON."""


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table's definition at a commit."""

    definition: TableChange
    since: CommittedChange
    """The change that led to it."""
    rewritten: CommittedChange | None
    """The last statement that changed rows without row events; None if none did since a snapshot."""

    @property
    def name(self) -> TableName:
        """The table's name."""
        return self.definition.name

    @property
    def exists(self) -> bool:
        """Whether there is such a table, and not only was."""
        return self.definition.columns is not None or self.definition.doubt is not None

    @property
    def columns(self) -> tuple[ColumnDefinition, ...] | None:
        """None if they are not certain."""
        return None if self.definition.doubt is not None else self.definition.columns

    def notes(self) -> str:
        """What is not as usual, in words."""
        notes = []
        if self.definition.doubt is not None:
            notes.append(f"not certain: {self.definition.doubt}")
        if self.rewritten is not None:
            notes.append(f"changed by statement: {_shown_statement(self.rewritten)}")
        return "; ".join(notes)

    def values(self) -> dict[str, Any]:
        """All but the columns, for JSON."""
        return {
            "database": self.name.database,
            "table": self.name.table,
            "version": self.definition.version,
            "column_count": None if self.columns is None else len(self.columns),
            "primary_key": None if self.columns is None else primary_key(self.columns),
            "doubt": self.definition.doubt,
            "changed_by_statement": None if self.rewritten is None else _origin(self.rewritten),
        }


@dataclass(frozen=True, slots=True)
class TableList:
    """All tables at a commit."""

    commit: int
    time_us: int
    tables: Sequence[ListedTable]

    def text(self) -> str:
        """A line per table."""
        rows = [
            (
                str(table.name),
                str(table.definition.version),
                "?" if table.columns is None else str(len(table.columns)),
                ", ".join(primary_key(table.columns or ())),
                table.notes(),
            )
            for table in self.tables
        ]
        return "\n".join(
            [
                f"commit {self.commit}, {shown_time(self.time_us)}",
                "",
                *text_table(("table", "version", "columns", "primary key", ""), rows, ("version", "columns")),
            ]
        )

    def values(self) -> dict[str, Any]:
        """`tables` in the order of the text."""
        return {**_at(self.commit, self.time_us), "tables": [table.values() for table in self.tables]}


@dataclass(frozen=True, slots=True)
class TableAt:
    """One table at a commit."""

    commit: int
    time_us: int
    table: ListedTable

    def text(self) -> str:
        """A line per column."""
        table = self.table
        lines = [
            f"{table.name}, version {table.definition.version} at commit {self.commit}, "
            f"{shown_time(self.time_us)}",
            f"since commit {table.since.commit}: {_shown_statement(table.since)}",
            *([table.notes()] if table.notes() else []),
        ]
        if table.columns is not None:
            head = ("column", "type", "character set", "null", "default", "key", "")
            lines += ["", *text_table(head, [_column_cells(column) for column in table.columns])]
        return "\n".join(lines)

    def values(self) -> dict[str, Any]:
        """The list's values of the table, and its columns."""
        columns = self.table.columns
        return {
            **_at(self.commit, self.time_us),
            **self.table.values(),
            "since": _origin(self.table.since),
            "columns": None if columns is None else [asdict(column) for column in columns],
        }


@dataclass(frozen=True, slots=True)
class TableHistory:
    """All changes of one table, also under earlier names."""

    name: TableName
    changes: Sequence[CommittedChange]
    """As `schema_history` returns them, with renames followed."""

    def text(self) -> str:
        """A paragraph per change."""
        paragraphs = [str(self.name)]
        for name, entry, found in self._steps():
            version = f"version {entry.change.tables[0].version}, " if entry.change.tables else ""
            former = f" as {name}" if name != self.name else ""
            paragraphs.append(
                "\n".join(
                    [
                        f"{version}commit {entry.commit}, {shown_time(entry.time_us)}, after _seq "
                        f"{entry.seq}{former}",
                        f"    {_shown_statement(entry)}",
                        *(f"    {line}" for line in _effects(entry, found)),
                    ]
                )
            )
        return "\n\n".join(paragraphs)

    def values(self) -> dict[str, Any]:
        """`changes` in order."""
        return {
            "database": self.name.database,
            "table": self.name.table,
            "changes": [_change_values(*step) for step in self._steps()],
        }

    def _steps(self) -> Iterator[tuple[TableName, CommittedChange, list[Difference] | None]]:
        """Each change with the table's name after it and the differences to the definition before.

        The differences are None if there was no definition, or if it is not known which columns are the same.
        """
        before: tuple[ColumnDefinition, ...] | None = None
        name = self._first_name()
        for entry in self.changes:
            table = entry.change.tables[0] if entry.change.tables else None
            found = None
            if table is not None:
                name = table.name
                previous = table.previous_names
                if before is not None and table.columns is not None and previous is not None:
                    found = differences(before, table.columns, previous)
                before = table.columns if table.doubt is None else None
            yield name, entry, found

    def _first_name(self) -> TableName:
        """The table's name before the first change that has a definition."""
        for entry in self.changes:
            for table in entry.change.tables:
                return table.renamed_from or table.name
        return self.name


def _effects(entry: CommittedChange, found: Sequence[Difference] | None) -> Iterator[str]:
    change = entry.change
    table = change.tables[0] if change.tables else None
    if change.emptied:
        yield "emptied     all rows removed"
    if change.rewritten:
        yield "rewritten   rows changed without row events"
    if table is None:
        return
    if table.renamed_from is not None:
        yield f"table       renamed from {table.renamed_from}"
    if table.doubt is not None:
        yield f"not certain {table.doubt}"
    elif table.columns is None:
        yield "gone        dropped, or renamed to another name"
    elif found is not None:
        yield from (difference.text() for difference in found)
    else:
        yield "columns     " + ", ".join(f"{column.name} {column.column_type}" for column in table.columns)
        if primary_key(table.columns):
            yield "primary key " + ", ".join(primary_key(table.columns))


def _change_values(
    name: TableName, entry: CommittedChange, found: Sequence[Difference] | None
) -> dict[str, Any]:
    change = entry.change
    table = change.tables[0] if change.tables else None
    columns = None if table is None or table.doubt is not None else table.columns
    return {
        **_origin(entry),
        "database": name.database,
        "table": name.table,
        "version": None if table is None else table.version,
        "columns": None if columns is None else [asdict(column) for column in columns],
        "doubt": None if table is None else table.doubt,
        "gone": table is not None and columns is None and table.doubt is None,
        "renamed_from": None if table is None or table.renamed_from is None else asdict(table.renamed_from),
        "emptied": bool(change.emptied),
        "rewritten": bool(change.rewritten),
        "differences": None if found is None else [asdict(difference) for difference in found],
    }


def _at(commit: int, time_us: int) -> dict[str, Any]:
    return {"commit": commit, "time_us": time_us}


def _origin(entry: CommittedChange) -> dict[str, Any]:
    change = entry.change
    return {
        **_at(entry.commit, entry.time_us),
        "seq": entry.seq,
        "source": change.source,
        "file": change.position.file,
        "position": change.position.position,
        "statement": change.statement,
    }


def _shown_statement(entry: CommittedChange) -> str:
    change = entry.change
    if change.source == "snapshot":
        return f"a snapshot begins at {change.position}"
    if change.statement is None:
        return f"learned from the {change.source} at {change.position}"
    return f"{shorten(change.statement, _STATEMENT_SHOWN, placeholder='…')} ({change.position})"


def _column_cells(column: ColumnDefinition) -> tuple[str, ...]:
    extra = [
        f"{column.generated} generated" if column.generated else "",
        "" if column.visible else "invisible",
    ]
    default = "computed" if column.computed_default else column.default
    return (
        column.name,
        column.column_type,
        column.collation or column.charset or "",
        "yes" if column.nullable else "no",
        "" if default is None else default,
        "" if column.primary_key is None else f"primary {column.primary_key}",
        ", ".join(filter(None, extra)),
    )
