"""Cuts the rows of one result set into batches of binlog events, which any decoder can decode.

The caller receives from the server into the space that `RowBatches` lends, and lends memory for batches in
turn. A batch is a format description and a table map as context, and one rows event with the rows as an
INSERT would log them. No I/O, and no Python per row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.binlog.event_index import TRANSACTION_END
from engine.binlog.event_types import FORMAT_DESCRIPTION_EVENT, SIZE_AT, TABLE_MAP_EVENT, WRITE_ROWS_EVENT
from engine.binlog.position import BinlogPosition
from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.kernels.kernel import Bytes
from engine.kernels.memory import PADDING
from engine.net.protocol.capabilities import Capability
from engine.net.protocol.packets import (
    HEADER_SIZE,
    MAX_PACKET,
    is_end,
    is_err,
    parse_eof,
    parse_err,
    parse_ok,
)
from engine.net.protocol.wire import ProtocolError
from engine.pipeline.messages import Batch, ChunkPart, StreamStatus
from engine.snapshot.rows.events import opening
from engine.snapshot.rows.row_format import Plan, RowFormat
from engine.snapshot.rows.transcription import (
    END,
    FAILED,
    FULL,
    MARKER,
    MORE,
    REASONS,
    SEQUENCE,
    SEVERAL_PACKETS,
    transcribe,
)

TARGET_BYTES = 2 << 20
"""The usual size of a batch, in bytes."""
RECEIVE_BYTES = 1 << 18
"""Room for received bytes; it grows for larger rows."""
LARGEST_ROW = 1 << 30
"""Bytes of the largest row that is accepted; servers send no larger packet (`max_allowed_packet`)."""
_CONTEXT = 2
"""Format description and table map: as context, the latter is not in the events feed."""
_SPARE_ROOM = RECEIVE_BYTES // 4
"""Bytes are moved to the start of the buffer when less room than this is left."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which place in the binlog the rows of a result set are said to come from."""

    file: str
    position: int
    """Every row gets it as `_pos`."""
    timestamp: int
    """Seconds since the epoch; every row gets it as `_commit_timestamp`."""


@dataclass(frozen=True, slots=True, eq=False)
class RowBatch:
    """A finished batch."""

    index: NDArray[np.uint32]
    """As in `Batch`: a row per event, of its offset in `data` and its type."""
    data: Bytes
    in_lent_memory: bool
    """Whether `data` begins where the lent memory does; if not, a large row needed more memory."""
    rows: int
    place: Place
    packed_columns: dict[str, bytes]

    def header(self, part: ChunkPart, slot: int | None) -> Batch:
        """The header with which a decoder accepts the batch; `slot` is where `data` is, or None."""
        return Batch(
            sequence=0,
            file=self.place.file,
            position=self.place.position,
            context_events=_CONTEXT,
            status=StreamStatus(BinlogPosition(self.place.file, self.place.position), ends_transaction=True),
            packed_columns=self.packed_columns,
            slot=slot,
            data_bytes=len(self.data),
            chunk=part,
        )


class RowBatches:
    """Batches of the rows of one result set.

    The caller repeats these steps until `finished`; memory stays lent until a batch is in it.

        if batches.wants_memory:
            batches.lend(memory)
        batch = batches.take()
        if batch is not None:
            send(batch)
        elif not batches.finished:
            batches.received(stream.recv_into(batches.room()))
    """

    def __init__(
        self,
        row_format: RowFormat,
        plan: Plan,
        place: Place,
        capabilities: Capability,
        *,
        sequence: int | None = None,
        target: int = TARGET_BYTES,
    ) -> None:
        """`plan`: of this result, by `row_format`. `sequence`: the number of the first row's packet; None if
        packets are not numbered (in a compressed connection). `target`: the largest size in bytes of a batch
        of several rows.
        """
        self._format = row_format
        self._plan = plan
        self._place = place
        self._capabilities = capabilities
        self._packed_columns = row_format.packed_columns
        start, self._offsets = opening(row_format, place.timestamp)
        self._opening = np.frombuffer(start, np.uint8)
        self._target = target
        self._sequence = -1 if sequence is None else sequence
        self._buffer: Bytes = np.empty(RECEIVE_BYTES + PADDING, np.uint8)
        self._start = self._end = 0
        self._wanted = HEADER_SIZE
        self._joined = 0
        self._lent: Bytes | None = None
        self._in_lent_memory = False
        self._images: Bytes = np.empty(0, np.uint8)
        self._at = 0
        self._batch_rows = 0
        self.finished = False
        """The result set has ended, and `take` has returned all of its rows."""
        self.rows = 0
        """Rows so far, those of the batch under construction included."""
        self.bytes = 0
        """Bytes received so far."""

    @property
    def wants_memory(self) -> bool:
        """Whether `take` needs memory for the next batch first."""
        return self._lent is None and not self.finished

    def lend(self, memory: Bytes) -> None:
        """Lend memory for the next batch. If it is too small for a row, the batch is in other memory."""
        self._lent = memory
        self._open_usual()

    def room(self) -> memoryview:
        """Where to receive further bytes of the connection; never empty."""
        self._make_room(self._wanted)
        return self._buffer[self._end : len(self._buffer) - PADDING].data

    def received(self, size: int) -> None:
        """So many bytes were received into `room()`."""
        self._end += size
        self.bytes += size

    def feed(self, data: bytes) -> None:
        """Add bytes that were received elsewhere, such as those read along with the columns' definitions."""
        self._make_room(self._end - self._start + len(data))
        self._buffer[self._end : self._end + len(data)] = np.frombuffer(data, np.uint8)
        self.received(len(data))

    def take(self) -> RowBatch | None:
        """The next finished batch; None if more bytes are needed, or if the result has ended (`finished`).

        Raises `ServerError` if the server ended the result with an error, `ProtocolError` for damaged bytes.
        """
        if self._lent is None:
            raise EngineError("no memory was lent for a batch: this is a bug, please report it")
        while True:
            status, column = self._transcribe()
            if status == FULL:
                if self._batch_rows:
                    return self._finish_batch()
                self._open(len(self._opening) + self._packet_size() + self._plan.overhead)
            elif status == SEVERAL_PACKETS:
                if not self._join_packets():
                    return None
            elif status == MORE:
                if self._end - self._start >= HEADER_SIZE:
                    self._wanted = HEADER_SIZE + self._length_at(self._start)
                    if self._start + self._wanted <= self._end:
                        # The row before was the last of several packets.
                        continue
                else:
                    self._wanted = HEADER_SIZE
                return None
            elif status in (END, FAILED) and not self._joined:
                self._end_result()
                return self._finish_batch() if self._batch_rows else None
            else:
                raise self._damage(REASONS.get(status, REASONS[MARKER]), column)

    def _transcribe(self) -> tuple[int, int]:
        """Write images until the kernel stops; returns its status and a broken value's column."""
        status, self._start, self._at, rows, self._sequence, column = transcribe(
            self._buffer,
            self._start,
            self._end,
            self._sequence,
            self._joined,
            self._plan.operations,
            self._plan.groups,
            self._plan.overhead,
            self._images,
            self._at,
        )
        if rows:
            self._joined = 0
            self._batch_rows += rows
            self.rows += rows
        return status, column

    def _open_usual(self) -> None:
        """Begin a batch in the lent memory."""
        assert self._lent is not None
        self._open(min(self._target, len(self._lent) - PADDING))

    def _open(self, size: int) -> None:
        """Begin a batch of at most `size` bytes, in the lent memory if that is large enough."""
        assert self._lent is not None
        wanted = max(size, len(self._opening)) + PADDING
        self._in_lent_memory = wanted <= len(self._lent)
        self._images = self._lent[:wanted] if self._in_lent_memory else np.empty(wanted, np.uint8)
        self._at = len(self._opening)
        self._images[: self._at] = self._opening

    def _finish_batch(self) -> RowBatch:
        rows_event = self._offsets[-1]
        size = (self._at - rows_event).to_bytes(4, "little")
        self._images[rows_event + SIZE_AT :][:4] = np.frombuffer(size, np.uint8)
        types = (FORMAT_DESCRIPTION_EVENT, TABLE_MAP_EVENT, WRITE_ROWS_EVENT | TRANSACTION_END)
        batch = RowBatch(
            index=np.array(list(zip(self._offsets, types, strict=True)), np.uint32),
            data=self._images[: self._at],
            in_lent_memory=self._in_lent_memory,
            rows=self._batch_rows,
            place=self._place,
            packed_columns=self._packed_columns,
        )
        self._batch_rows = 0
        if self._in_lent_memory:
            self._lent = None
        else:
            self._open_usual()
        return batch

    def _make_room(self, wanted: int) -> None:
        """Have room for `wanted` bytes from the next packet on, and for some after the last byte."""
        if self._start == self._end:
            self._start = self._end = 0
        capacity = len(self._buffer) - PADDING
        if self._start + wanted <= capacity and self._end + _SPARE_ROOM <= capacity:
            return
        held = self._buffer[self._start : self._end]
        needed = max(wanted, len(held) + _SPARE_ROOM)
        if needed > capacity or (capacity > RECEIVE_BYTES >= 2 * needed):
            # Doubled, so that the parts of a large row are not copied with each of them.
            size = RECEIVE_BYTES if needed <= RECEIVE_BYTES else max(needed, 2 * len(held))
            self._buffer = np.empty(size + PADDING, np.uint8)
        self._buffer[: len(held)] = held
        self._start, self._end = 0, len(held)

    def _length_at(self, start: int) -> int:
        return int.from_bytes(self._buffer[start : start + 3].tobytes(), "little")

    def _packet_size(self) -> int:
        return self._joined or HEADER_SIZE + self._length_at(self._start)

    def _join_packets(self) -> bool:
        """Join the packets of one row if all of them are there; false if more bytes are needed."""
        parts: list[tuple[int, int]] = []
        at = self._start
        while not parts or parts[-1][1] == MAX_PACKET:
            if at - self._start > LARGEST_ROW:
                raise self._damage(f"a row has more than {LARGEST_ROW} bytes", 0)
            if at + HEADER_SIZE > self._end:
                self._wanted = at + HEADER_SIZE - self._start
                return False
            if self._sequence >= 0 and self._buffer[at + 3] != (self._sequence + len(parts)) & 0xFF:
                raise self._damage(REASONS[SEQUENCE], 0)
            parts.append((at + HEADER_SIZE, self._length_at(at)))
            at = parts[-1][0] + parts[-1][1]
        if at > self._end:
            self._wanted = at - self._start
            return False
        to = parts[0][0] + MAX_PACKET
        # What follows the row is moved as well.
        for start, size in [*parts[1:], (at, self._end - at)]:
            self._buffer[to : to + size] = self._buffer[start : start + size]
            to += size
        self._joined = sum(size for _, size in parts)
        self._start, self._end = parts[0][0], to
        if self._sequence >= 0:
            self._sequence = (self._sequence + len(parts)) & 0xFF
        return True

    def _end_result(self) -> None:
        """Read the packet that ends the result."""
        end = self._start + self._packet_size()
        payload = self._buffer[self._start + HEADER_SIZE : end].tobytes()
        if is_err(payload):
            raise parse_err(payload)
        if not is_end(payload, self._capabilities) or end != self._end:
            raise self._damage(REASONS[MARKER], 0)
        if Capability.DEPRECATE_EOF in self._capabilities:
            parse_ok(payload, self._capabilities)
        else:
            parse_eof(payload)
        self._start = end
        self.finished = True

    def _damage(self, reason: str, column: int) -> ProtocolError:
        definition = self._format.definition
        name = self._format.cells[column].column.name
        return ProtocolError(
            f"the server sent a damaged result of {definition.database}.{definition.table}: {reason} "
            f"(row {self.rows + 1}, column {name})"
        )
