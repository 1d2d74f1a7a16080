"""The JSON object that the status page shows: `/status.json`."""

from __future__ import annotations

from dataclasses import replace

from engine.monitoring.figures import Figures
from engine.monitoring.health import not_alive, not_ready
from engine.records import json_text

SHOWN_TABLES = 100


def status_json(figures: Figures, history: dict[str, list[float | None]]) -> bytes:
    """The figures, what is wrong, and the last hour, as one JSON object.

    Of the tables it has the largest; infinite values are null, as JSON has none.
    """
    tables = sorted(figures.output.tables, key=lambda table: (-table.bytes, table.name))
    output = replace(figures.output, tables=tuple(tables[:SHOWN_TABLES]))
    return json_text(
        {
            "live": not_alive(figures) == [],
            "ready": not_ready(figures) == [],
            "problems": not_ready(figures) or not_alive(figures),
            "table_count": len(tables),
            "figures": replace(figures, output=output),
            "history": history,
        }
    )
