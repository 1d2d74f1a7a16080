"""The status page without a browser: nothing is from elsewhere, and its parts fit each other."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources

import pytest

from engine.monitoring.figures import TableFigures
from engine.monitoring.history import History, Sample
from engine.monitoring.status_page import SHOWN_TABLES, status_json, status_page
from tests.support.figures import FIGURES

SCRIPT = (resources.files("engine.monitoring") / "page" / "status.js").read_text()


class Document(HTMLParser):
    """The ids, links and text of style and script of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.content: dict[str, str] = {}
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values[name] for name in ("href", "src", "action") if name in values]
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        self.content[self._inside] = self.content.get(self._inside, "") + data


PAGE = Document(status_page().content.decode())


def status() -> dict[str, object]:
    history = History()
    history.add(Sample.of(FIGURES))
    return json.loads(status_json(FIGURES, history.columns()))


def test_nothing_comes_from_elsewhere():
    assert set(PAGE.links) == {"metrics", "status.json", "livez", "readyz"}
    text = status_page().content.decode().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[a-z]|@import|url\(", text)


def test_the_policy_allows_this_script_and_style_only():
    policy = status_page().policy
    for tag in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(PAGE.content[tag].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert not re.search(r"\sstyle=|\son\w+=", status_page().content.decode())


def test_text_from_the_engine_is_never_markup():
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", SCRIPT)


def test_the_script_uses_ids_that_the_document_has():
    used = set(re.findall(r'getElementById\("([\w-]+)"\)', SCRIPT)) | set(
        re.findall(r'table\("([\w-]+)",', SCRIPT)
    )
    assert len(used) > 8
    assert used <= set(PAGE.ids)
    assert len(set(PAGE.ids)) == len(PAGE.ids)


def test_the_script_uses_values_that_the_status_has():
    seen = status()
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
        used = set(re.findall(rf"\b{owner}\.(\w+)", SCRIPT)) - {"json"}
        assert used, owner
        assert used <= set(values), owner
    rows = {**figures["processes"][0], **figures["output"]["tables"][0], **figures["notices"][0]}
    assert set(re.findall(r"\beach\.(\w+)", SCRIPT)) <= set(rows)
    plots = re.findall(r'^  \["[^"]+", "(\w+)", (?:true|false), \w+\],$', SCRIPT, re.MULTILINE)
    assert len(plots) == 9
    assert set(plots) <= set(seen["history"])


def test_the_largest_tables_are_shown():
    tables = tuple(TableFigures(f"shop.t{number}", 1, number, 1) for number in range(SHOWN_TABLES + 5))
    figures = replace(FIGURES, output=replace(FIGURES.output, tables=tables))
    seen = json.loads(status_json(figures, {}))
    shown = [table["name"] for table in seen["figures"]["output"]["tables"]]
    assert (len(shown), shown[0], seen["table_count"]) == (
        SHOWN_TABLES,
        f"shop.t{SHOWN_TABLES + 4}",
        SHOWN_TABLES + 5,
    )


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to run the script with")
def test_the_script_runs():
    """In node, with the few parts of a document that it uses."""
    made = subprocess.run(
        ["node", "-"],
        input=f"""
class Element {{
  constructor(name) {{ this.name = name; this.children = []; this.attributes = {{}}; this.textContent = ""; }}
  append(...more) {{ this.children.push(...more); }}
  replaceChildren(...more) {{ this.children = more; }}
  setAttribute(name, value) {{ this.attributes[name] = value; }}
  get text() {{ return this.textContent + this.children.map((child) => child.text).join("|"); }}
}}
const ids = Object.fromEntries({json.dumps(PAGE.ids)}.map((id) => [id, new Element(id)]));
globalThis.document = {{
  title: "", getElementById: (id) => ids[id], createElement: (name) => new Element(name),
  createElementNS: (_, name) => new Element(name),
}};
globalThis.setTimeout = () => undefined;
globalThis.fetch = async () => ({{ ok: true, json: async () => ({json.dumps(status())}) }});
(0, eval)({json.dumps(SCRIPT)});
setImmediate(() => setImmediate(() => console.log(JSON.stringify(
  Object.fromEntries(Object.entries(ids).map(([id, one]) => [id, one.text]))))));
""",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    shown = json.loads(made.stdout)
    assert shown["verdict"] == "Ready: the stream makes progress"
    assert "db1:3306 → /data/changes" in shown["route"]
    assert "Lag|2.0 s" in shown["facts"] and "Position|binlog.000003:150" in shown["facts"]
    assert "shop.orders|10|2|1.0 KB" in shown["tables"]
    assert "the server went away" in shown["notices"]
    assert "decoder-0|102|0.5 s ago|1.0 MB" in shown["processes"]
    assert "Lag|2.0 s" in shown["plots"]
