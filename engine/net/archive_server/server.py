"""The archive server: a replication source of archived binlog files for any client of the protocol.

`ReplicationSource` listens and runs each client's connection (`client_connection`) in a thread. MySQL and
MariaDB servers replicate from it, by position or by GTID, with checksums or without. It needs no other
process of the engine.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from engine.errors import EngineError
from engine.net.archive_server.archive import Archive
from engine.net.archive_server.client_connection import ClientConnection, ServerState
from engine.net.archive_server.server_login import Account
from engine.net.archive_server.server_tls import ServerTls
from engine.net.protocol.packets import ServerError

CONNECTION_LIMIT = 200


class ReplicationSource:
    """Serves binlog files, oldest first; it listens inside its `with` block.

    `port` 0 takes any free port; the attribute `port` then is its number. Without a user every login is
    accepted. Clients may use TLS; without `tls` its certificate is a new self-signed one.
    """

    def __init__(
        self,
        files: Iterable[Path | str],
        host: str = "127.0.0.1",
        port: int = 0,
        user: str | None = None,
        password: str = "",
        tls: ServerTls | None = None,
    ) -> None:
        """Raises `EngineError` for files that cannot be served."""
        self.archive = Archive(Path(file) for file in files)
        self.host = host
        self.port = port
        account = None if user is None else Account(user, password)
        self._state = ServerState(self.archive, account, tls or ServerTls.make())
        self._listener: socket.socket | None = None
        self._acceptor = threading.Thread(target=self._accept, name="accept", daemon=True)
        self._clients: dict[ClientConnection, threading.Thread] = {}
        self._connection_ids = itertools.count(1)

    def __enter__(self) -> Self:
        """Listen. Raises `EngineError` if the port is not available."""
        try:
            self._listener = socket.create_server((self.host, self.port))
        except OSError as error:
            raise EngineError(
                f"cannot listen on {self.host}:{self.port} ({error.strerror or error}): choose another port"
            ) from None
        self.port = self._listener.getsockname()[1]
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening and disconnect all clients."""
        if self._listener is not None:
            # Closing a socket does not wake the thread that waits on it.
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._acceptor.join()
        for client, thread in list(self._clients.items()):
            client.disconnect()
            thread.join()

    def _accept(self) -> None:
        assert self._listener is not None
        while True:
            try:
                sock, address = self._listener.accept()
            except OSError:
                return
            client = ClientConnection(self._state, sock, str(address[0]), next(self._connection_ids))
            if len(self._clients) >= CONNECTION_LIMIT:
                client.refuse(ServerError(1040, "08004", "Too many connections"))
                continue
            thread = threading.Thread(target=self._run, args=(client,), name="client", daemon=True)
            self._clients[client] = thread
            thread.start()

    def _run(self, client: ClientConnection) -> None:
        try:
            client.run()
        finally:
            self._clients.pop(client, None)


def run_server(
    files: Iterable[Path | str],
    host: str = "127.0.0.1",
    port: int = 0,
    user: str | None = None,
    password: str = "",
    tls: ServerTls | None = None,
    announce: Callable[[str], None] = print,
) -> None:
    """Serve the files until SIGINT or SIGTERM.

    `announce` is called with a line that contains the address as soon as clients can connect. Only for the
    main thread. Raises `EngineError` for files that cannot be served and a port that is in use.
    """
    ended = threading.Event()
    handlers = {
        number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        with ReplicationSource(files, host, port, user, password, tls) as source:
            names = [binlog.name for binlog in source.archive.binlogs]
            span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names)} files)"
            announce(f"serving {span} on {source.host}:{source.port}")
            ended.wait()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
