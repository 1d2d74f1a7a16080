"""What the doctor says of a server that cannot be reached."""

from __future__ import annotations

import socket

from engine.commands.check import examine_server
from engine.config.secret import Secret
from engine.config.server_address import Login, ServerAddress
from engine.config.table_filter import EVERY_TABLE
from engine.config.tls import NO_TLS


def test_nothing_listens() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = ServerAddress(
            "127.0.0.1", probe.getsockname()[1], Login("u", (Secret("hush"),), NO_TLS, "none", None), None
        )
        (finding,) = examine_server(address, EVERY_TABLE, None)
    assert (finding.what, finding.level) == ("connection", "required")
    assert "nothing listens on 127.0.0.1" in finding.why
