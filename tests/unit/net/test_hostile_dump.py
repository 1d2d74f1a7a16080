"""A server that lies in the middle of a dump: one sentence that can be shown, whatever its bytes say.

The dump comes over real sockets, through the receive kernel that the network process has.
"""

from __future__ import annotations

import re
import select
import struct
import time
from collections.abc import Callable

import pytest

from engine.binlog import event_types as t
from engine.binlog.format_description import FormatDescription
from engine.errors import BinlogError, EngineError, EventError, printable
from engine.net.batching.rotation import parse_rotation
from engine.net.batching.stream_position import StreamPosition
from engine.net.client.compressed_stream import Stream
from engine.net.client.connection import Connection
from engine.net.client.dump_batches import dump_batches
from engine.net.client.server_events import read_server_events
from engine.net.client.source_facts import SourceFacts
from engine.net.client.statements_ahead import StatementsAhead
from engine.net.protocol.packets import ServerError, build_err, frame
from tests.support.binlog_builder import format_description, make_event, make_events
from tests.support.lying_server import OK, PeakMemory, Talk, lying_server
from tests.support.made_events import gtid, query, xid

MEGABYTE = 1 << 20
MEMORY = 300 * MEGABYTE
SECONDS = 10.0
ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m\n\r"
FACTS = SourceFacts(
    flavor="mysql",
    version="9.7.0",
    version_tuple=(9, 7, 0),
    server_id=1,
    server_uuid="3e11fa47-71ca-11e1-9e33-c80aa9429562",
    log_bin=True,
    binlog_format="ROW",
    binlog_row_image="FULL",
    binlog_row_metadata="FULL",
    binlog_checksum="NONE",
    gtid_mode="ON",
    gtid_purged="",
    gtid_set="",
    semi_sync=False,
)


def rotation(name: bytes, position: int = 4) -> bytes:
    return make_event(t.ROTATE_EVENT, struct.pack("<Q", position) + name, flags=t.FLAG_ARTIFICIAL)


FORMAT = format_description(checksum=False)
TRANSACTION = make_events([gtid(1), query("BEGIN"), xid()], 4 + len(FORMAT), checksum=False)
BEGINNING = [rotation(b"binlog.000001"), FORMAT, *TRANSACTION]


def claiming(size: int) -> bytes:
    """An event whose header has another size."""
    event = make_event(t.XID_EVENT, bytes(8))
    return event[:9] + struct.pack("<I", size) + event[13:]


def packets(*events: bytes) -> bytes:
    sequence = 1
    sent = b""
    for event in [*BEGINNING, *events]:
        framed, sequence = frame(b"\0" + event, sequence)
        sent += framed
    return sent


LIES: dict[str, tuple[Callable[[], bytes], str]] = {
    "a file above the folder": (
        lambda: packets(rotation(b"../../../etc/passwd")),
        "no server has a binlog file",
    ),
    "a file of another folder": (lambda: packets(rotation(b"/etc/passwd")), "no server has a binlog file"),
    "a file with a NUL": (lambda: packets(rotation(b"binlog.2\0.arrow")), "no server has a binlog file"),
    "a file with escapes": (lambda: packets(rotation(ESCAPES.encode())), "no server has a binlog file"),
    "a file of 100 KB": (lambda: packets(rotation(b"x" * 100_000)), "'x{40}' .100000 bytes"),
    "a file without a name": (lambda: packets(rotation(b"")), "too short to name a file"),
    "a position below zero": (
        lambda: packets(rotation(b"binlog.2", (1 << 64) - 1)),
        "no binlog file has a position",
    ),
    "an event of 4 GB": (lambda: packets(claiming(0xFFFFFFFF)), "larger than any server writes"),
    "an event of 1 GB in a packet of 31 bytes": (lambda: packets(claiming(1 << 30)), "size does not fit"),
    "an event of no bytes": (lambda: packets(claiming(0)), "size does not fit"),
    "a packet of no bytes": (lambda: packets() + b"\0\0\0\x06" * 2, "not part of a binlog stream"),
    "a request for a local file": (
        lambda: packets() + b"\x0c\0\0\x06\xfb/etc/passwd",
        "not part of a binlog",
    ),
    "an error of 16 MB with escapes": (
        lambda: packets() + frame(build_err(ServerError(1236, "HY000", ESCAPES + "x" * 16_000_000)), 6)[0],
        "ended the dump at",
    ),
}


def dumped(bytes_of: Callable[[], bytes]) -> Callable[[Talk], None]:
    def script(talk: Talk) -> None:
        talk.log_in()
        talk.statement()
        talk.send(OK)
        assert talk.statement() == "SELECT CURRENT_USER()"
        talk.answer(["CURRENT_USER()"], [["u@%"]])
        talk.command()
        talk.send_bytes(bytes_of())

    return script


@pytest.mark.parametrize("lie", LIES)
def test_lies_in_a_dump(lie: str) -> None:
    bytes_of, expected = LIES[lie]
    begun = time.monotonic()
    with lying_server(dumped(bytes_of)) as port, PeakMemory() as memory:
        connection = Connection.open("127.0.0.1", port, "u", "secret", read_timeout=5.0)
        with pytest.raises(EngineError, match=expected) as caught:
            for _ in dump_batches(connection, FACTS, "binlog.000001", 4):
                pass
    sentence = str(caught.value)
    assert len(sentence) < 1000 and "root:" not in sentence
    assert all(character.isprintable() for character in printable(sentence))
    assert time.monotonic() - begun < SECONDS
    assert memory.bytes < MEMORY


@pytest.mark.parametrize("lie", LIES)
def test_lies_while_reading_ahead(lie: str) -> None:
    """They count as changes of every table, and say what is wrong."""
    bytes_of, expected = LIES[lie]
    here = StreamPosition("binlog.000001", 4, 4)

    def wait(stream: Stream, empty: bool) -> None:
        select.select([stream] if empty else [], [], [], SECONDS * empty)

    with lying_server(dumped(bytes_of)) as port, PeakMemory() as memory:
        ahead = StatementsAhead(
            lambda: Connection.open("127.0.0.1", port, "u", "secret", read_timeout=5.0),
            FACTS,
            wait,
        )
        ahead.read(here, None)
    found = ahead.change_of("shop", "t", here)
    assert found is not None and re.search(expected, found.what)
    assert len(found.what) < 1000 and all(character.isprintable() for character in printable(found.what))
    assert memory.bytes < MEMORY


def test_an_event_that_is_not_sent_takes_no_memory() -> None:
    """Room comes with the bytes, not with the size that a header claims."""
    event = make_event(t.XID_EVENT, b"x" * 0xFFFFFF)
    first = frame(b"\0" + event[:9] + struct.pack("<I", 1_500_000_000) + event[13:], 6)[0][: 4 + 0xFFFFFF]
    with lying_server(dumped(lambda: packets() + first)) as port, PeakMemory() as memory:
        connection = Connection.open("127.0.0.1", port, "u", "secret", read_timeout=1.0)
        with pytest.raises(EngineError, match="was lost"):
            for _ in dump_batches(connection, FACTS, "binlog.000001", 4):
                pass
    assert memory.bytes < MEMORY


def test_the_events_command_says_where_the_lie_is() -> None:
    with lying_server(dumped(lambda: packets(claiming(0)))) as port:
        connection = Connection.open("127.0.0.1", port, "u", "secret", read_timeout=5.0)
        with pytest.raises(BinlogError, match=r"binlog.000001 at position .* claims a size of 0 bytes"):
            list(read_server_events(connection, FACTS, "binlog.000001", 4, 77))


NAMES = ["binlog.000001", "mysql-bin.999999", "журнал.000001", "a b.000001", "x" * 512]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_servers_use(name: str) -> None:
    fmt = FormatDescription.assumed()
    if len(name.encode()) <= 512:
        assert parse_rotation(rotation(name.encode()), fmt).file == name
    with pytest.raises(EventError):
        parse_rotation(rotation(name.encode() + b"\x1b"), fmt)


SHOWN = [
    ("an orders table: ä, 訂單, \u3000 and 🙂\n\tas they are", None),
    ("\x1b[2J", "\\u001b[2J"),
    ("\x9b31m\u202e\ud800", "\\u009b31m\\u202e\\ud800"),
    ("over\rwritten\x00", "over\\rwritten\\u0000"),
]


@pytest.mark.parametrize(("text", "shown"), SHOWN, ids=ascii)
def test_what_is_shown(text: str, shown: str | None) -> None:
    assert printable(text) == (text if shown is None else shown)
