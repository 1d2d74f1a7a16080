"""A server that lies: each lie ends in one sentence, within bounded memory and time, and learns no secret.

The lies are scripts that speak the protocol from bytes, over real sockets.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engine.config.tls import Tls, TlsMode
from engine.errors import EngineError
from engine.net.client import connection as connection_module
from engine.net.client import dump_requests, server_queries, source_facts
from engine.net.client.connection import Connection
from engine.net.client.table_columns import describe_table, user_tables
from engine.net.protocol.capabilities import Capability
from engine.net.protocol.handshake import build_auth_switch, build_greeting
from engine.net.protocol.packets import ServerError, build_err
from engine.net.protocol.resultset import build_column_definition
from engine.net.protocol.wire import lenenc_int_bytes, uint_bytes
from tests.support.lying_server import CAPABILITIES, GREETING, OK, PeakMemory, Script, Talk, lying_server

PASSWORD = "correct horse battery staple"
MEGABYTE = 1 << 20
LONGEST_SENTENCE = 1000
SECONDS = 10.0
MEMORY = 400 * MEGABYTE

Lie = tuple[Script, str]


class Heard:
    """What a client has sent."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.bytes = b""

    def __call__(self, talk: Talk) -> None:
        read = talk.read

        def heard() -> bytes:
            payload = read()
            self.bytes += payload
            return payload

        talk.read = heard  # type: ignore[method-assign]
        self._script(talk)


def trap(
    script: Script,
    expected: str,
    ask: Callable[[Connection], object] = lambda connection: None,
    **settings: Any,
) -> Heard:
    """Connect and ask; the lie must end in that sentence, soon, in little memory, without the password."""
    heard = Heard(script)
    with lying_server(heard) as port, PeakMemory() as memory:
        begun = time.monotonic()
        with pytest.raises(EngineError, match=expected) as caught:
            _ask(port, ask, settings)
        assert time.monotonic() - begun < SECONDS
    assert memory.bytes < MEMORY
    sentence = str(caught.value)
    assert len(sentence) < LONGEST_SENTENCE and PASSWORD not in sentence
    assert PASSWORD.encode() not in heard.bytes
    return heard


def _ask(port: int, ask: Callable[[Connection], object], settings: dict[str, Any]) -> None:
    given = {"read_timeout": 5.0, "connect_timeout": 5.0, **settings}
    with Connection.open("127.0.0.1", port, "u", PASSWORD, **given) as connection:
        ask(connection)


def after_greeting(*payloads: bytes) -> Script:
    def script(talk: Talk) -> None:
        talk.greet()
        talk.send(*payloads)

    return script


def switches_for_ever(talk: Talk) -> None:
    talk.greet()
    while True:
        talk.send(build_auth_switch("mysql_native_password", bytes(range(33, 53))))
        talk.read()


def sends_no_key(talk: Talk) -> None:
    talk.greet()
    talk.send(b"\x01\x04")
    talk.read()
    talk.send(b"\x01not a key")


def trickles(talk: Talk) -> None:
    """A byte now and then, so that no single wait is long."""
    talk.send_bytes(uint_bytes(60_000, 3) + b"\0\x0a")
    while True:
        talk.send_bytes(b"x")
        time.sleep(0.05)


def has_a_long_version(talk: Talk) -> None:
    talk.greet(server_version="9" * 200)
    talk.send(b"\xff")


def miscounts_packets(talk: Talk) -> None:
    talk.log_in()
    talk.command()
    talk.send_bytes(b"\x01\0\0\x09\x01")


LIES_AT_LOGIN: dict[str, Lie] = {
    "a greeting of 16 MB": (
        lambda talk: talk.send_bytes(uint_bytes(0xFFFFFF, 3) + b"\0"),
        "payload of more than 65536 bytes",
    ),
    "a greeting out of order": (
        lambda talk: talk.send_bytes(b"\x05\0\0\x07hello"),
        "packet 7 arrived instead",
    ),
    "a greeting of nothing": (lambda talk: talk.send_bytes(b"\0\0\0\0"), "malformed greeting"),
    "another protocol": (
        lambda talk: talk.send_bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9),
        "does not answer like",
    ),
    "a version of 60 KB": (
        lambda talk: talk.greet(server_version="9" * 60_000),
        "version has 60000 characters",
    ),
    "a version of many digits": (has_a_long_version, "malformed ERR packet"),
    "an authentication method that does not exist": (
        after_greeting(build_auth_switch("auth_of_mine", b"x" * 20)),
        "authentication method auth_of_mine, which is not supported",
    ),
    "a method with a long name": (
        after_greeting(build_auth_switch("a" * 60_000, b"")),
        "name of the authentication method has 60000 bytes",
    ),
    "the password in clear": (
        after_greeting(build_auth_switch("mysql_clear_password", b"")),
        "requests the password in clear",
    ),
    "the password in a dialog": (after_greeting(build_auth_switch("dialog", b"\x04Password: ")), "in clear"),
    "the hash of old passwords": (after_greeting(b"\xfe"), "is insecure and is never sent"),
    "a public key that is none": (sends_no_key, "not an RSA key in PEM form"),
    "switches that never end": (switches_for_ever, "did not finish after 16 answers"),
    "an error of 60 KB": (
        after_greeting(build_err(ServerError(1105, "HY000", "x" * 60_000))),
        "error 1105: x{512}…",
    ),
    "an OK packet that ends inside": (after_greeting(b"\0\xfc"), "malformed OK packet"),
}


@pytest.mark.parametrize("lie", LIES_AT_LOGIN)
def test_lies_at_login(lie: str) -> None:
    trap(*LIES_AT_LOGIN[lie])


def test_a_login_that_trickles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "LOGIN_SECONDS", 1.0)
    trap(trickles, "did not end within 1 s")


@pytest.mark.parametrize("mode", [TlsMode.REQUIRED, TlsMode.VERIFY_CA, TlsMode.VERIFY_IDENTITY])
def test_a_server_that_takes_its_offer_of_tls_back(mode: TlsMode) -> None:
    heard = trap(lambda talk: talk.greet(), "TLS", tls=Tls(mode))
    assert heard.bytes == b"", "not even the user's name"


def test_bytes_before_tls() -> None:
    """What came in clear must not count as if it had come encrypted."""

    def script(talk: Talk) -> None:
        greeting = build_greeting(replace(GREETING, capabilities=CAPABILITIES | Capability.SSL))
        talk.send(greeting, OK)

    trap(script, "between the greeting and TLS", tls=Tls(TlsMode.REQUIRED))


def after_login(*payloads: bytes, **changes: Any) -> Script:
    """The payloads are the answer to the first statement."""

    def script(talk: Talk) -> None:
        talk.log_in(**changes)
        talk.command()
        talk.send(*payloads)

    return script


def rows_for_ever(columns: int, cell: bytes) -> Script:
    definitions = [build_column_definition(f"c{number}") for number in range(columns)]

    def script(talk: Talk) -> None:
        talk.log_in()
        talk.command()
        talk.send(lenenc_int_bytes(columns), *definitions)
        talk.send_for_ever(cell * columns)

    return script


def says(message: str) -> bytes:
    return build_err(ServerError(1105, "HY000", message))


LIES_IN_ANSWERS: dict[str, Lie] = {
    "a request for a local file": (
        after_login(b"\xfb/etc/passwd"),
        "requested a local file, which is never sent",
    ),
    "a million columns": (after_login(lenenc_int_bytes(1_000_000)), "malformed column count: 1000000"),
    "a column with a name of 60 KB": (
        after_login(b"\x01", build_column_definition("x" * 60_000)),
        "malformed column definition: it has 60",
    ),
    "large rows without an end": (
        rows_for_ever(1, b"\xfd\0\0\x01" + b"x" * (1 << 16)),
        "answer does not end",
    ),
    "small rows without an end": (rows_for_ever(1000, b"\0"), "answer does not end"),
    "a row of gigabytes": (
        after_login(b"\x01", build_column_definition("c"), b"x" * (80 * MEGABYTE)),
        "payload of more than 67108864 bytes",
    ),
    "a cell that is longer than its row": (
        after_login(b"\x01", build_column_definition("c"), b"\xfd\xff\xff\xff"),
        "malformed text row: 16777215 bytes are needed",
    ),
    "a packet out of order": (miscounts_packets, "packet 9 arrived instead of packet 1"),
    "an error of 16 MB": (after_login(says("x" * 16_000_000)), "error 1105: x{512}…"),
    "an empty answer": (after_login(b""), "malformed column count"),
}


@pytest.mark.parametrize("lie", LIES_IN_ANSWERS)
def test_lies_in_answers(lie: str) -> None:
    trap(*LIES_IN_ANSWERS[lie], ask=lambda connection: connection.query("SELECT 1"))


@pytest.mark.parametrize("marker", [b"\xfb/etc/passwd", b"\x07"], ids=["a local file", "nothing known"])
@pytest.mark.parametrize("ask", [lambda c: c.start_rows("SELECT 1"), lambda c: dump_requests.register(c, 1)])
def test_other_commands_send_no_file_either(marker: bytes, ask: Callable[[Connection], object]) -> None:
    heard = trap(after_login(marker), "marker|neither an OK packet nor an error", ask)
    assert b"root:" not in heard.bytes


def compressed(frames: Callable[[], bytes], for_ever: bool = False) -> Script:
    def script(talk: Talk) -> None:
        talk.greet(capabilities=CAPABILITIES | Capability.COMPRESS)
        talk.send(OK)
        talk.read_bytes()
        while True:
            talk.send_bytes(frames())
            if not for_ever:
                return

    return script


def compressed_frame(body: bytes, size: int) -> bytes:
    return uint_bytes(len(body), 3) + b"\0" + uint_bytes(size, 3) + body


BOMB = zlib.compress(bytes(64 * MEGABYTE))
LIES_IN_FRAMES: dict[str, Lie] = {
    "a bomb": (compressed(lambda: compressed_frame(BOMB, 100)), "longer than announced"),
    "a bomb of 16 MB": (compressed(lambda: compressed_frame(BOMB, 0xFFFFFF)), "longer than announced"),
    "more than there is": (
        compressed(lambda: compressed_frame(zlib.compress(b"x"), 999)),
        "holds 1 bytes and announces",
    ),
    "junk": (compressed(lambda: compressed_frame(b"junk" * 20, 999)), "cannot be decompressed"),
    "nothing, for ever": (
        compressed(lambda: compressed_frame(b"", 0) * 1000, for_ever=True),
        "frame is empty",
    ),
}


@pytest.mark.parametrize("lie", LIES_IN_FRAMES)
def test_lies_in_compressed_frames(lie: str) -> None:
    trap(*LIES_IN_FRAMES[lie], compression="zlib")


Rows = list[tuple[str | None, ...]]


def answers(*results: tuple[list[str], Rows]) -> Script:
    """These results, one for each statement."""

    def script(talk: Talk) -> None:
        talk.log_in()
        for columns, rows in results:
            talk.command()
            talk.answer(columns, rows)

    return script


TWO, THREE = ["a", "b"], ["a", "b", "c"]
NO_FORM = "answered a statement in a form that no server uses"
WRONG_FORMS: dict[str, tuple[Callable[[Connection], object], Script, str]] = {
    "settings in three columns": (source_facts.read_facts, answers((THREE, [("a", "b", "c")])), NO_FORM),
    "a server id that is no number": (
        source_facts.read_facts,
        answers((TWO, [("server_id", "seven")])),
        NO_FORM,
    ),
    "a server id of many digits": (
        source_facts.read_facts,
        answers((TWO, [("server_id", "9" * 9999)])),
        NO_FORM,
    ),
    "no executed set": (server_queries.executed_or_owned, answers((TWO, [])), NO_FORM),
    "an executed set that is none": (
        server_queries.executed_or_owned,
        answers((TWO, [("", "x")])),
        "not a MySQL GTID",
    ),
    "a list of binlogs without sizes": (
        server_queries.binary_logs,
        answers((["a"], [("binlog.1",)])),
        NO_FORM,
    ),
    "no file in the status": (server_queries.end_of_binlog, answers((TWO, [("binlog.1", "4")])), NO_FORM),
    "tables in three columns": (user_tables, answers((THREE, [("a", "b", "c")])), NO_FORM),
    "a replica without a number": (server_queries.replicas, answers((["Server_Id"], [("one",)])), NO_FORM),
    "columns that are none": (
        lambda connection: describe_table(connection, "d", "t"),
        answers((TWO, []), (TWO, [("t", "id")]), (THREE, [])),
        NO_FORM,
    ),
}


@pytest.mark.parametrize("form", WRONG_FORMS)
def test_answers_of_a_wrong_form(form: str) -> None:
    ask, script, sentence = WRONG_FORMS[form]
    trap(script, sentence, ask)
