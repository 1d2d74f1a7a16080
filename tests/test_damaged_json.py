"""JSON whose text is not UTF-8, in the pipeline and the `events` command: a located error."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.decode import event_types as types
from engine.decode.event_stream import decode_all as decode_events
from engine.errors import BinlogError
from engine.net.files import read_events
from tests.made_events import Part, binlog, gtid, image, integer, query, rows, xid
from tests.test_expand import decode
from tests.test_json_diffs import REPLACE, difference
from tests.test_partial_updates import BEFORE, FULL, TABLE, differences, document, update

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
def test_text_that_is_not_utf8_ends_both_with_its_place(name: str, tmp_path: Path):
    event, reason = EVENTS[name]
    first = [gtid(1), query("BEGIN"), TABLE, insert({"sound": "ÿ\ufffd"}), xid()]
    parts = [*first, gtid(2), query("BEGIN"), TABLE]
    place = 4 + sum(map(len, binlog(parts)))
    error = f"binlog.000001 at position {place}: in a row of shop.orders, {reason}"

    decoded = decode([*parts, event, xid()])
    assert decoded.error is not None and decoded.error.startswith(error)
    # What comes before is committed.
    assert [row["@2"] for row in decoded.rows["orders"]] == ['{"sound": "ÿ\ufffd"}']
    # Its bytes are to blame: `--on-corrupt skip` goes on behind it.
    assert decoded.results[0].corruption is not None

    path = tmp_path / "binlog.000001"
    path.write_bytes(b"\xfebin" + b"".join(binlog([*parts, event, xid()])))
    events = ((path.name, position, data) for position, data in read_events(path))
    with pytest.raises(BinlogError) as caught:
        list(decode_events(events))
    assert str(caught.value).startswith(error)
