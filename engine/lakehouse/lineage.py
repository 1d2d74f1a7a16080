"""Which table a target is of, wherever the target is: the table whose history leads to the target's note.

A note names a definition of a table. Tables keep their rows when they are renamed, so a history goes on under
the earlier names, and the names alone do not say which table a target is of. No IO.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.lakehouse.target import Note
from engine.output.schema_state import CommittedChange
from engine.schema.changes import TableName


def leads_to(history: Sequence[CommittedChange], note: Note) -> bool:
    """Whether the target with that note is of the table at the end of the history.

    A table that was dropped and created again counts as the same one, which was emptied; a table that was
    renamed, and another one that got its name, do not.
    """
    for entry in reversed(history):
        for table in entry.change.tables:
            if (str(table.name), table.version) == (note.table, note.definition):
                return True
            if table.columns is None and table.doubt is None and not entry.change.emptied:
                return False
    return False


def earlier_table_names(history: Sequence[CommittedChange], name: TableName) -> list[TableName]:
    """The other names that the table had, the last one first."""
    found = (table.renamed_from for entry in reversed(history) for table in entry.change.tables)
    return list(dict.fromkeys(each for each in found if each is not None and each != name))
