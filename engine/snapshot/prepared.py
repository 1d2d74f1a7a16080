"""Waits for XA transactions that are prepared when a read is to begin.

Their rows are in the binlog at XA PREPARE, before the stream's place and perhaps before its start, but no
view shows them before XA COMMIT. So a view is opened only when all have ended that were prepared before the
place. Those that are prepared later come later in the stream, too.
"""

from __future__ import annotations

import time

from engine.net.client.connection import Connection
from engine.net.client.explained import explained
from engine.net.client.refusals import Refusal
from engine.net.client.server_queries import has_prepared
from engine.net.client.xa_recover import HIDDEN, prepared_xids
from engine.net.protocol.resultset import Row
from engine.snapshot.sessions import Readers
from engine.snapshot.waiting import TableBusy

_MENTIONED_AFTER_SECONDS = 1
_GIVEN_UP_AFTER_SECONDS = 10
_PAUSE_SECONDS = 0.02

Counts = tuple[Row, ...]
"""Kinds of XA statements, and how often the server has executed each."""


class PreparedTransactions:
    """Those of the server that rows are read from. Methods may be called by any thread."""

    def __init__(self) -> None:
        self._may_list = True
        self.waited_for: str | None = None
        """The XID of one for which a reader has waited a while; None after a wait that succeeded."""
        self.are_hidden = False
        """The server, which had such transactions since its start, does not list them for this user."""

    def wait(self, readers: Readers, *, as_one: bool = False) -> None:
        """Wait until those have ended that are prepared now.

        Not long if the stream waits meanwhile (`as_one`). Raises `TableBusy` then, and `EngineError`.
        """
        left = self._listed(readers.rows)
        begun = time.monotonic()
        while left:
            readers.check()
            waited = time.monotonic() - begun
            if waited > _MENTIONED_AFTER_SECONDS:
                self.waited_for = min(left)
                if as_one or waited > _GIVEN_UP_AFTER_SECONDS:
                    raise TableBusy(f"the XA transaction {self.waited_for} is prepared and does not end")
            time.sleep(_PAUSE_SECONDS)
            left &= self._listed(readers.rows)
        self.waited_for = None

    def count_if_none(self, connection: Connection) -> Counts | None:
        """How often transactions were prepared and ended since the server's start; None if some are prepared.

        Equal counts show that none was prepared at any moment in between. Raises `Refusal`.
        """
        # A statement that is under way counts already, and may not have changed the list yet.
        before, listed, after = _counts(connection), self._listed(connection), _counts(connection)
        return None if listed or before != after else after

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
