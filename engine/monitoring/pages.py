"""The pages for people: the status of one source, and the list of a fleet's sources.

A page is one HTML document with its style and script inside, made once from files in `page/`: the frame, the
style and `shared.js` are those of all pages, the sections and a script are its own. The script asks for
`status.json` beside the page every few seconds and draws it; nothing comes from elsewhere, and the page's
policy forbids it to.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Literal

from engine.dataclass import dataclass

PageName = Literal["status", "fleet"]


@dataclass(frozen=True, slots=True)
class Page:
    """A document, and the policy with which it is served."""

    content: bytes
    policy: str


@cache
def page(name: PageName) -> Page:
    """The page, whose policy allows its own script and style, and requests to its own server."""
    style, script = _text("style.css"), _text("shared.js") + _text(f"{name}.js")
    parts = {"<!--sections-->": _text(f"{name}.html"), "/*style*/": style, "/*script*/": script}
    html = _text("frame.html")
    for mark, part in parts.items():
        html = html.replace(mark, part)
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(html.encode(), policy)


def _text(name: str) -> str:
    return (resources.files("engine.monitoring") / "page" / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
