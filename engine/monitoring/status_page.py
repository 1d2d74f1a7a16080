"""The status page for people, and the JSON object that it shows: `/` and `/status.json`.

The page is one HTML document with its style and script inside, made once from three files beside this module.
The script asks for the JSON every few seconds and draws it; nothing comes from elsewhere, and the page's
policy forbids it to.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

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


@dataclass(frozen=True, slots=True)
class Page:
    """A document, and the policy with which it is served."""

    content: bytes
    policy: str


@cache
def status_page() -> Page:
    """The page, whose policy allows its own script and style, and requests to its own server."""
    folder = resources.files("engine.monitoring") / "page"
    style, script = ((folder / name).read_text("utf-8") for name in ("status.css", "status.js"))
    html = (folder / "status.html").read_text("utf-8")
    content = html.replace("/*style*/", style).replace("/*script*/", script)
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(content.encode(), policy)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
