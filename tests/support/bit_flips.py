"""Damage for a proxy to do: one bit of what a server sends, in a packet that is known by its content."""

from __future__ import annotations

from collections.abc import Callable

HEADER_LENGTH = 4
LENGTH, SEQUENCE, MARKER, EVENT_TYPE = 0, 3, 4, 9
"""Where in a packet that carries an event each of them is."""


class PacketFlip:
    """Flips a bit of each packet whose payload `matches`, at most `times` often over all connections.

    `at`: the byte, counted from the packet's header on, or from the packet's end where it is negative.
    """

    def __init__(
        self, matches: Callable[[bytes], bool], at: int, bit: int = 4, times: int | None = None
    ) -> None:
        self._matches = matches
        self._at = at
        self._bit = bit
        self._left = times
        self.done = 0

    def __call__(self) -> Callable[[bytes], bytes]:
        """For one connection, which is neither encrypted nor compressed."""
        received = bytearray()

        def changed(data: bytes) -> bytes:
            received.extend(data)
            passed = bytearray()
            while len(received) >= HEADER_LENGTH:
                size = HEADER_LENGTH + int.from_bytes(received[:3], "little")
                if len(received) < size:
                    break
                passed += self._packet(received[:size])
                del received[:size]
            return bytes(passed)

        return changed

    def _packet(self, packet: bytearray) -> bytearray:
        if self._left != 0 and self._matches(bytes(packet[HEADER_LENGTH:])):
            packet[self._at] ^= 1 << self._bit
            self.done += 1
            if self._left is not None:
                self._left -= 1
        return packet


class StreamFlip:
    """Flips a bit of the byte at an offset, whatever that is, of the first connections that get so far."""

    def __init__(self, offset: int, connections: int) -> None:
        self._offset = offset
        self._connections = connections
        self.done = 0

    def __call__(self) -> Callable[[bytes], bytes]:
        """For one connection, which may be encrypted or compressed."""
        passed = 0

        def changed(data: bytes) -> bytes:
            nonlocal passed
            at = self._offset - passed
            passed += len(data)
            if self.done == self._connections or not 0 <= at < len(data):
                return data
            self.done += 1
            return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

        return changed
