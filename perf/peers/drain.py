"""The physical limit: a client that reads the stream from the socket and does nothing with it."""

from __future__ import annotations

import resource
import time
from contextlib import closing

from engine.config.tls import NO_TLS, Tls, TlsMode
from engine.net.client.connection import Connection
from engine.net.client.dump_requests import prepare_dump, start_dump
from engine.net.client.source_facts import read_facts
from perf.binlog import ServedBinlog
from perf.measurement import Measurement, PeerError, Usage
from perf.peer import Peer

_BUFFER_BYTES = 4 << 20
_SERVER_ID = 4_000_001
_UUID = "00000000-0000-0000-0000-000000000001"
_EOF_PACKET_LENGTH = 9
_TLS = Tls(TlsMode.REQUIRED)


class SocketDrain(Peer[ServedBinlog]):
    """Only calls `recv_into`, up to the EOF packet that ends a non-blocking dump."""

    name = "socket drain"
    remark = "receives and forgets: the limit"

    def measure(self, subject: ServedBinlog) -> Measurement:
        server = subject.server
        begun = time.perf_counter()
        tls = _TLS if subject.tls else NO_TLS
        connection = Connection.open(server.host, server.port, server.user, server.password, tls=tls)
        prepare_dump(connection, read_facts(connection), heartbeat_seconds=30, replica_uuid=_UUID)
        buffer = memoryview(bytearray(_BUFFER_BYTES))
        before = resource.getrusage(resource.RUSAGE_SELF)
        dumping = time.perf_counter()
        start_dump(connection, subject.file, 4, _SERVER_ID, non_block=True)
        stream, pending = connection.take_over()
        received = len(pending)
        with closing(stream):
            # A timeout would need a further system call per read.
            stream.settimeout(None)
            while size := stream.recv_into(buffer):
                received += size
                if received >= subject.binlog.size and _ends_with_eof(buffer[:size]):
                    break
        ended = time.perf_counter()
        after = resource.getrusage(resource.RUSAGE_SELF)
        if received < subject.binlog.size:
            raise PeerError(f"the server sent {received} bytes only: {bytes(buffer[:200])!r}")
        usage = Usage(after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, _BUFFER_BYTES)
        return Measurement(ended - dumping, dumping - begun, {"drain": usage})


def _ends_with_eof(received: memoryview) -> bool:
    """Whether the last packet is EOF: five bytes, the first of them 0xfe."""
    last = received[-_EOF_PACKET_LENGTH:].tobytes()
    return last[:3] == b"\x05\x00\x00" and last[4:5] == b"\xfe"
