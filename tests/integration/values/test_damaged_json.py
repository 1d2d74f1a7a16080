"""JSON whose text is not UTF-8, in the pipeline and the `events` command: a located error."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.binlog import event_types as types
from engine.binlog.files import read_events
from engine.decode.columns.json.diffs import REPLACE
from engine.decode.inspect.event_stream import decode_all as decode_events
from engine.errors import BinlogError
from engine.output.reader import Changes
from tests.servers import Server
from tests.support.binlog_builder import Part, binlog
from tests.support.decoded_parts import decode
from tests.support.engine_run import run_command
from tests.support.json_differences import difference
from tests.support.made_events import gtid, image, integer, query, rows, xid
from tests.support.partial_updates import BEFORE, FULL, TABLE, differences, document, update

NOT_UTF8 = "column @2: a JSON string is not UTF-8 (byte 0xff)"


def broken(stored: bytes) -> bytes:
    return stored.replace(b"?", b"\xff")


def insert(value: object) -> Part:
    images = [image([integer(1), document(value), None])]
    code, body = rows(types.WRITE_ROWS_EVENT, 7, 3, images)
    return code, broken(body)


def changed(*, path: str = "$.a", value: object = 1) -> bytes:
    return broken(image([integer(1), differences(difference(REPLACE, path, value)), None]))


KEY_ONLY = b"\x01"
EVENTS = {
    "a string": (insert(["sound", "so?nd"]), NOT_UTF8),
    "a key": (insert({"k?y": 1}), NOT_UTF8),
    "a new value": (
        update(BEFORE, FULL + b"\x01" + changed(value="?")),
        NOT_UTF8,
    ),
    "a path": (update(BEFORE, FULL + b"\x01" + changed(path="$.?")), "column @2: a JSON path is not UTF-8"),
    "a listed value": (
        update(image([integer(1)]), FULL + b"\x01" + changed(value="?"), before=KEY_ONLY),
        NOT_UTF8,
    ),
    "a listed path": (
        update(image([integer(1)]), FULL + b"\x01" + changed(path="$.?"), before=KEY_ONLY),
        "column @2: a JSON path is not UTF-8",
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_text_that_is_not_utf8_ends_both_with_its_place(name: str, tmp_path: Path) -> None:
    event, reason = EVENTS[name]
    first = [gtid(1), query("BEGIN"), TABLE, insert({"sound": "ÿ\ufffd"}), xid()]
    parts = [*first, gtid(2), query("BEGIN"), TABLE]
    place = 4 + sum(map(len, binlog(parts)))
    error = f"binlog.000001 at position {place}: in a row of shop.orders, {reason}"

    decoded = decode([*parts, event, xid()])
    assert decoded.error is not None and decoded.error.startswith(error)
    # What comes before is committed.
    assert [row["@2"] for row in decoded.rows["orders"]] == ['{"sound": "ÿ\ufffd"}']
    # Its bytes are the cause: `--on-corrupt skip` continues after it.
    failure = decoded.results[0].status.failure
    assert failure is not None and failure.corruption is not None

    path = tmp_path / "binlog.000001"
    path.write_bytes(b"\xfebin" + b"".join(binlog([*parts, event, xid()])))
    events = ((path.name, position, data) for position, data in read_events(path))
    with pytest.raises(BinlogError) as caught:
        list(decode_events(events))
    assert str(caught.value).startswith(error)


@pytest.mark.server
def test_bytes_that_a_server_let_in(mysql97: Server, tmp_path: Path) -> None:
    mysql97.flush_binlog()
    mysql97.execute(
        "DROP DATABASE IF EXISTS not_utf8",
        "CREATE DATABASE not_utf8",
        "CREATE TABLE not_utf8.t (id INT PRIMARY KEY, j JSON)",
        "INSERT INTO not_utf8.t VALUES (1, '[1]')",
        "INSERT INTO not_utf8.t VALUES (2, JSON_ARRAY(_ascii x'61ff62'))",
        "INSERT INTO not_utf8.t VALUES (3, '[3]')",
    )
    path = mysql97.binlogs()[-1]
    mysql97.flush_binlog()
    mysql97.execute("DROP DATABASE not_utf8")
    out = tmp_path / "out"
    # `decode` follows the statements of the file, which name the columns.
    commands = {"@2": ["events", str(path), "--json"], "j": ["decode", str(path), "--out", str(out)]}
    for column, command in commands.items():
        ended = run_command(*command)
        assert ended.status == 1
        assert f"{path.name} at position " in ended.sentence
        assert (
            f"in a row of not_utf8.t, column {column}: a JSON string is not UTF-8 (byte 0xff)"
            in ended.sentence
        )
    assert run_command("decode", str(path), "--out", str(out), "--on-corrupt=skip").status == 0
    assert Changes(out).read("not_utf8", "t").column("j").to_pylist() == ["[1]", "[3]"]
