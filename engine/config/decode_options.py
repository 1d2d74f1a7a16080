"""What a decoder process is started with, in a module that imports little."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config.table_filter import EVERY_TABLE, TableFilter


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """What the user chose for all batches of a run."""

    tables: TableFilter = EVERY_TABLE
    temporal_text: bool = False
    bookkeeping_events: bool = False
    """Whether the events feed holds GTIDs, BEGINs, table maps and the like as well."""
    names_needed: bool = False
    """Rows whose columns nobody has named are refused; else such columns are numbered."""
