"""The pages without a browser: nothing is from elsewhere, and their parts fit each other."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from engine.commands.fleet.source_state import SourceState
from engine.commands.fleet.watch import FleetWatch
from engine.monitoring.figures import TableFigures
from engine.monitoring.history import History, Sample
from engine.monitoring.monitor import Monitor
from engine.monitoring.pages import PageName, page
from engine.monitoring.status import SHOWN_TABLES, status_json
from engine.pipeline.observer import Observer
from tests.support.figures import FIGURES


class Document(HTMLParser):
    """The ids, links and text of style and script of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.content: dict[str, str] = {}
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.ids += [values["id"] or ""] if "id" in values else []
        self.links += [values[name] or "" for name in ("href", "src", "action") if name in values]
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        self.content[self._inside] = self.content.get(self._inside, "") + data


NAMES: tuple[PageName, ...] = ("status", "fleet")
DOCUMENTS = {name: Document(page(name).content.decode()) for name in NAMES}
SCRIPTS = {name: document.content["script"] for name, document in DOCUMENTS.items()}
LINKS = {"metrics", "status.json", "livez", "readyz"}
every_page = pytest.mark.parametrize("name", NAMES)


def status() -> dict[str, Any]:
    history = History()
    history.add(Sample.of(FIGURES))
    return json.loads(status_json(FIGURES, history.columns()))


def fleet_status(folder: Path) -> dict[str, Any]:
    """Of a source that is followed and has figures, and one that waits and has none yet."""
    monitor = Monitor(folder, "shop", Observer())
    monitor.tail.figures = FIGURES.output
    watch = FleetWatch()
    good = SourceState("shop", "/out/shop", "running", rows=5)
    waiting = SourceState("crm", "/out/crm", "waiting", error="access <b>denied</b>", retry_us=1)
    watch.show((good, waiting), {"shop": monitor})
    return json.loads(watch.status_json())


@every_page
def test_nothing_comes_from_elsewhere(name: PageName) -> None:
    assert set(DOCUMENTS[name].links) == (LINKS | {"../../"} if name == "status" else LINKS)
    text = page(name).content.decode().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[a-z]|@import|url\(", text)
    assert not re.search(r"<!--|/\*s", text)


@every_page
def test_the_policy_allows_this_script_and_style_only(name: PageName) -> None:
    policy = page(name).policy
    for tag in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(DOCUMENTS[name].content[tag].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert not re.search(r"\sstyle=|\son\w+=", page(name).content.decode())


@every_page
def test_text_from_the_engine_is_never_markup(name: PageName) -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", SCRIPTS[name])


@every_page
def test_the_script_uses_ids_that_the_document_has(name: PageName) -> None:
    ids = DOCUMENTS[name].ids
    used = set(re.findall(r'getElementById\("([\w-]+)"\)', SCRIPTS[name]))
    used |= set(re.findall(r'table\("([\w-]+)",', SCRIPTS[name]))
    # Without the id of `table` itself, each is used.
    assert used == set(ids)
    assert len(set(ids)) == len(ids)


def test_the_script_uses_values_that_the_status_has() -> None:
    seen, script = status(), SCRIPTS["status"]
    figures = seen["figures"]
    names = {
        "status": seen,
        "figures": figures,
        "server": figures["server"],
        "output": figures["output"],
        "totals": figures["totals"],
        "snapshot": figures["output"]["snapshot"],
        "history": seen["history"],
    }
    for owner, values in names.items():
        used = set(re.findall(rf"\b{owner}\.(\w+)", script)) - {"json"}
        assert used, owner
        assert used <= set(values), owner
    rows = {**figures["processes"][0], **figures["output"]["tables"][0], **figures["notices"][0]}
    assert set(re.findall(r"\beach\.(\w+)", script)) <= set(rows)
    plots = re.findall(r'^  \["[^"]+", "(\w+)", (?:true|false), \w+\],$', script, re.MULTILINE)
    assert len(plots) == 9
    assert set(plots) <= set(seen["history"])


def test_the_script_uses_values_that_the_status_of_a_fleet_has(tmp_path: Path) -> None:
    seen = fleet_status(tmp_path)
    for owner, values in {"status": seen, "each": seen["sources"][0]}.items():
        used = set(re.findall(rf"\b{owner}\.(\w+)", SCRIPTS["fleet"])) - {"json"}
        assert used, owner
        assert used <= set(values), owner


def test_the_largest_tables_are_shown() -> None:
    tables = tuple(TableFigures(f"shop.t{number}", 1, number, 1) for number in range(SHOWN_TABLES + 5))
    figures = replace(FIGURES, output=replace(FIGURES.output, tables=tables))
    seen = json.loads(status_json(figures, {}))
    shown = [table["name"] for table in seen["figures"]["output"]["tables"]]
    assert (len(shown), shown[0], seen["table_count"]) == (
        SHOWN_TABLES,
        f"shop.t{SHOWN_TABLES + 4}",
        SHOWN_TABLES + 5,
    )


def shown_by(name: PageName, answer: dict[str, Any], path: str) -> dict[str, str]:
    """The text of each element with an id, after the page's script ran in node.

    Of a document it has the few parts that scripts use.
    """
    made = subprocess.run(
        ["node", "-"],
        input=f"""
class Element {{
  constructor(name) {{ this.name = name; this.children = []; this.attributes = {{}}; this.textContent = ""; }}
  append(...more) {{ this.children.push(...more); }}
  replaceChildren(...more) {{ this.children = more; }}
  setAttribute(name, value) {{ this.attributes[name] = value; }}
  get text() {{
    const inner = this.children.map((child) => typeof child === "string" ? child : child.text).join("|");
    const marks = (this.href ? ` (${{this.href}})` : "") + (this.hidden ? " (hidden)" : "");
    return this.textContent + inner + marks;
  }}
}}
const ids = Object.fromEntries({json.dumps(DOCUMENTS[name].ids)}.map((id) => [id, new Element(id)]));
globalThis.location = {{ pathname: {json.dumps(path)} }};
globalThis.document = {{
  title: "", getElementById: (id) => ids[id], createElement: (name) => new Element(name),
  createElementNS: (_, name) => new Element(name),
}};
globalThis.setTimeout = () => undefined;
globalThis.fetch = async () => ({{ ok: true, json: async () => ({json.dumps(answer)}) }});
(0, eval)({json.dumps(SCRIPTS[name])});
setImmediate(() => setImmediate(() => console.log(JSON.stringify(
  Object.fromEntries(Object.entries(ids).map(([id, one]) => [id, one.text]))))));
""",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(made.stdout)


needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="there is no node to run the script with"
)


@needs_node
def test_the_script_of_a_source_runs() -> None:
    shown = shown_by("status", status(), "/")
    assert shown["verdict"] == "Ready: the stream makes progress"
    assert "db1:3306 → /data/changes" in shown["route"]
    assert "Lag|2.0 s" in shown["facts"] and "Position|binlog.000003:150" in shown["facts"]
    assert "shop.orders|10|2|1.0 KB" in shown["tables"]
    assert "the server went away" in shown["notices"]
    assert "decoder-0|102|0.5 s ago|1.0 MB" in shown["processes"]
    assert "Lag|2.0 s" in shown["plots"]
    assert "hidden" in shown["fleet"]
    assert "hidden" not in shown_by("status", status(), "/behind/a/proxy/source/shop/")["fleet"]


@needs_node
def test_the_script_of_a_fleet_runs(tmp_path: Path) -> None:
    status = fleet_status(tmp_path)
    commit, *_ = (source["commit_time"] for source in status["sources"])
    status["now"] = commit + 3.0
    shown = shown_by("fleet", status, "/")
    assert shown["verdict"] == "Not ready: 1 of 2 sources are followed"
    assert shown["problems"] == "crm is waiting: access <b>denied</b>"
    assert "shop (source/shop/)|running|not known|not known|5|7, 3.0 s ago|" in shown["sources"]
    assert "crm (source/crm/)|waiting, next attempt in 0.0 s|not known|not known|0|" in shown["sources"]
    assert "|access <b>denied</b>" in shown["sources"]
