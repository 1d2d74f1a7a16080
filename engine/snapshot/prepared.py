"""Waits for XA transactions that are prepared when a read is to begin.

Their rows are in the binlog at XA PREPARE, before the stream's place and perhaps before its start, but no
view shows them before XA COMMIT. So a view is opened only when all have ended that were prepared before the
place. Those that are prepared later come later in the stream, too. A server that lists late may not list some
yet of which the stream has the rows: those are waited for until they are listed, or have ended in the stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from engine.net.client.connection import Connection
from engine.net.client.explained import explained
from engine.net.client.refusals import Refusal
from engine.net.client.server_queries import has_prepared
from engine.net.client.xa_recover import HIDDEN, lists_late, prepared_xids
from engine.net.protocol.resultset import Row
from engine.pipeline.snapshot_messages import Place
from engine.snapshot.sessions import Readers
from engine.snapshot.waiting import TableBusy

_MENTIONED_AFTER_SECONDS = 1
_GIVEN_UP_AFTER_SECONDS = 10
_PAUSE_SECONDS = 0.02

Counts = tuple[Row, ...]
"""Kinds of XA statements, and how often the server has executed each."""


class PreparedTransactions:
    """Those of the server that rows are read from. Methods may be called by any thread.

    `place` asks where the stream is.
    """

    def __init__(self, place: Callable[[], Place]) -> None:
        self._place = place
        self._may_list = True
        self._unlisted: set[str] = set()
        """Prepared in the stream, and not listed for long: they are not being prepared any more."""
        self.waited_for: str | None = None
        """The XID of one for which a reader has waited a while; None after a wait that succeeded."""
        self.are_hidden = False
        """The server, which had such transactions since its start, does not list them for this user."""

    def wait(
        self,
        readers: Readers,
        place: Place,
        *,
        as_one: bool = False,
        until: Callable[[Place], None] = lambda place: None,
    ) -> None:
        """Wait until those have ended that are prepared now, and at `place`.

        Not long if the stream waits meanwhile (`as_one`). `until` waits until the server has come to a later
        place. Raises `TableBusy` if one does not end, and `EngineError`.
        """
        left = self._listed(readers.rows)
        unlisted = frozenset[str]()
        if lists_late(readers.rows) and not as_one:
            unlisted = frozenset(place.prepared) - left - self._unlisted
        begun = time.monotonic()
        while left or unlisted:
            readers.check()
            waited = time.monotonic() - begun
            if waited > _MENTIONED_AFTER_SECONDS and left:
                self.waited_for = min(left)
                if as_one or waited > _GIVEN_UP_AFTER_SECONDS:
                    raise TableBusy(f"the XA transaction {self.waited_for} is prepared and does not end")
            if unlisted and waited > _GIVEN_UP_AFTER_SECONDS:
                self._unlisted |= unlisted
                unlisted = frozenset()
            # In this order: one that has ended in the stream is listed until views have it.
            in_stream = self._in_stream(until) if unlisted else frozenset()
            listed = self._listed(readers.rows)
            left, unlisted = listed & (left | unlisted), (unlisted & in_stream) - listed
            if left or unlisted:
                time.sleep(_PAUSE_SECONDS)
        self.waited_for = None

    def count_if_none(self, connection: Connection) -> Counts | None:
        """How often transactions were prepared and ended since the server's start; None if some are prepared.

        Equal counts show that none was prepared at any moment in between. On a server that lists late, they
        do so only if there was none at all. Raises `Refusal`.
        """
        # A statement that is under way counts already, and may not have changed the list yet.
        before, listed, after = _counts(connection), self._listed(connection), _counts(connection)
        if lists_late(connection) and any(count != "0" for _, count in after):
            return None
        return None if listed or before != after else after

    def _in_stream(self, until: Callable[[Place], None]) -> frozenset[str]:
        """What is prepared where the stream is now, once the server has come there."""
        place = self._place()
        until(place)
        return frozenset(place.prepared)

    def _listed(self, connection: Connection) -> frozenset[str]:
        if not self._may_list:
            return frozenset()
        try:
            return prepared_xids(connection)
        except Refusal as refusal:
            if refusal.code != HIDDEN:
                raise
        self._may_list = False
        self.are_hidden = has_prepared(connection)
        return frozenset()


def _counts(connection: Connection) -> Counts:
    names = "('Com_xa_prepare', 'Com_xa_commit', 'Com_xa_rollback')"
    with explained(connection):
        return tuple(connection.query(f"SHOW GLOBAL STATUS WHERE Variable_name IN {names}"))
