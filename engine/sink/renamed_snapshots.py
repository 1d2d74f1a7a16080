"""What a RENAME means for the snapshots of tables, whose states are kept by name.

If another table gets a name, its snapshot begins anew: the ranges that were read are those of the table
before. A table that gets another name before all its rows were read is not read further, so it is set aside
under the new name if that is not being read anyway: it must not look complete. No IO.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from engine.output.snapshot_progress import EVERYTHING, TableSnapshot
from engine.schema.changes import SchemaChange, TableName


def states_after_renames(
    change: SchemaChange, states: Mapping[TableName, TableSnapshot]
) -> Iterator[TableSnapshot]:
    """The states that a change gives to tables, which had `states` before it."""
    for table in change.tables:
        name, before = table.name, table.renamed_from
        if before is None or table.outside:
            continue
        known, source = states.get(name), states.get(before)
        if known is not None and known.state == "running":
            yield replace(known, state="waiting", rows=0, left=(EVERYTHING,), moved=())
        elif (known is None or known.ended) and source is not None and not source.ended:
            reason = f"it was renamed from {before} before that was read: request it again"
            yield TableSnapshot(name.database, name.table, source.request, "failed", reason=reason)
