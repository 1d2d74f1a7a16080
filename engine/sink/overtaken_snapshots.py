"""What a statement means for the snapshots of tables, whose states are kept by name.

If another table gets a name, or a statement changes a table's rows without row events, the snapshot begins
anew: the rows that were read are not the table's any more. A table that gets another name before all its rows
were read is not read further, so it is set aside under the new name if that is not being read anyway: it must
not look complete. No IO.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from engine.output.schema_state import rewritten_names
from engine.output.snapshot_progress import EVERYTHING, TableSnapshot
from engine.schema.changes import SchemaChange, TableName


def states_after(change: SchemaChange, states: Mapping[TableName, TableSnapshot]) -> Iterator[TableSnapshot]:
    """The states that a change gives to tables, which had `states` before it."""
    renamed = [table for table in change.tables if table.renamed_from is not None and not table.outside]
    for name in {table.name for table in renamed} | set(rewritten_names(change)):
        known = states.get(name)
        if known is not None and known.state == "running":
            yield replace(known, state="waiting", rows=0, left=(EVERYTHING,), moved=())
    for table in renamed:
        before, known = table.renamed_from, states.get(table.name)
        source = None if before is None else states.get(before)
        if (known is None or known.ended) and source is not None and not source.ended:
            reason = f"it was renamed from {before} before that was read: request it again"
            name = table.name
            yield TableSnapshot(name.database, name.table, source.request, "failed", reason=reason)
