"""The options of decoding, in a module that imports little, since every process needs it."""

from __future__ import annotations

from engine.config.table_filter import EVERY_TABLE, TableFilter
from engine.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """The user's choices for all batches of a run."""

    tables: TableFilter = EVERY_TABLE
    temporal_text: bool = False
    bookkeeping_events: bool = False
    """Whether the events feed also contains GTIDs, BEGINs, table maps and similar events."""
    names_needed: bool = False
    """Rows whose column names are not known are an error; otherwise such columns are numbered."""
