"""How a chunk is read so that its place in the binlog is known: three methods, one for each kind of server.

*Watermarks* (MySQL with GTIDs): a transaction is in `gtid_executed` only after its commit in the storage
engine, so a server that has executed everything before the stream's place shows all of it; and a transaction
is in the binlog before that commit, so the end of the binlog after the read is after everything that was
read. *Consistent snapshots* (MariaDB, Percona Server): the server itself gives the place of a transaction's
view. *Table locks* (all others): while a table is locked, its transactions are complete, so a view that is
opened meanwhile shows the table as it is at the end of the binlog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from typing import Protocol

from engine.binlog.gtid_set import MariadbGtidSet
from engine.binlog.position import BinlogPosition
from engine.errors import EngineError
from engine.net.client.connection import Connection
from engine.net.client.explained import account_in_words, context_of, explained
from engine.net.client.refusals import explain
from engine.net.client.server_queries import end_of_binlog, gives_places, gtid_set_at
from engine.net.client.source_facts import SourceFacts
from engine.net.protocol.packets import ServerError
from engine.pipeline.snapshot_messages import Place
from engine.snapshot.prepared import PreparedTransactions
from engine.snapshot.sessions import Readers
from engine.snapshot.waiting import TableBusy, wait_until

High = Callable[[], BinlogPosition]
"""Returns, after the read, a place in the binlog before which everything is that was read."""

_ASKED_EVERY = 6
_LOCK_SECONDS = 1
_LOCKS_ARE_COMPLETE_SINCE = (8, 0)
"""MySQL's LOCK TABLES … READ waits for all transactions since then. Before, and on MariaDB, it may not wait
for those that are open, or were prepared by a session that is gone. InnoDB does, but only if the statement
begins a transaction itself; UNLOCK TABLES ends that."""
_LOCK_TIMEOUT = 1205
_DENIED = (1044, 1045, 1142, 1227)
_OPEN_VIEW = "START TRANSACTION WITH CONSISTENT SNAPSHOT"


class Views(Protocol):
    """A method to read."""

    reads_together: bool
    """Whether several tables may be read in one context: none needs a lock."""

    def open(
        self, readers: Readers, place: Place, tables: Sequence[str], *, has_views: bool, as_one: bool = False
    ) -> AbstractContextManager[High]:
        """A context in which `tables` (quoted) are read as they are at `place` or later.

        `has_views`: their storage engines have transactions. `as_one`: as at one place, which is known when
        the context begins. Raises `TableBusy`, and `EngineError` if the server refuses it.
        """
        ...


class Watermarks:
    """For MySQL with `gtid_mode=ON`."""

    reads_together = True

    def __init__(self, prepared: PreparedTransactions) -> None:
        self._prepared = prepared

    @contextmanager
    def open(
        self, readers: Readers, place: Place, tables: Sequence[str], *, has_views: bool, as_one: bool = False
    ) -> Iterator[High]:
        """See `Views.open`."""
        if as_one or place.gtid_set is None:
            at_source = readers.at_source
            with TableLocks().open(at_source, place, tables, has_views=has_views, as_one=as_one) as high:
                yield high
            return
        wait_until(lambda: self._has_executed(readers.rows, place.gtid_set or ""), readers)
        self._prepared.wait(readers, place)
        yield lambda: end_of_binlog(readers.source)

    def _has_executed(self, connection: Connection, gtid_set: str) -> bool:
        question = f"SELECT GTID_SUBSET({connection.quote(gtid_set)}, @@GLOBAL.gtid_executed)"
        with explained(connection):
            return connection.query(question)[0][0] == "1"


class ConsistentSnapshots:
    """For servers with the status variables `binlog_snapshot_file` and `binlog_snapshot_position`."""

    reads_together = True

    def __init__(self, prepared: PreparedTransactions) -> None:
        self._prepared = prepared
        self._has_start = False
        """Views have everything that the stream has not received because it was there at its start."""

    @contextmanager
    def open(
        self, readers: Readers, place: Place, tables: Sequence[str], *, has_views: bool, as_one: bool = False
    ) -> Iterator[High]:
        """See `Views.open`."""
        if not has_views:
            with TableLocks().open(readers, place, tables, has_views=False, as_one=as_one) as high:
                yield high
            return
        self._prepared.wait(readers, place, as_one=as_one)
        before = self._prepared.count_if_none(readers.rows) if as_one else None
        attempts = count()
        view = wait_until(lambda: self._view_after(readers.rows, place, next(attempts)), readers)
        with _ended(readers.rows):
            if not as_one or (before is not None and self._prepared.count_if_none(readers.rows) == before):
                yield lambda: view
                return
        # Some may have been prepared before the view, and committed after it.
        with TableLocks().open(readers, place, tables, has_views=True, as_one=True) as high:
            yield high

    def _view_after(self, connection: Connection, place: Place, attempt: int) -> BinlogPosition | None:
        """Open a view, instead of an open one; None if it does not have everything that the stream has."""
        with explained(connection):
            connection.execute(_OPEN_VIEW)
            rows = connection.query("SHOW STATUS LIKE 'binlog_snapshot_%'")
            shown = {(name or "").lower(): value or "" for name, value in rows}
            view = BinlogPosition(shown["binlog_snapshot_file"], int(shown["binlog_snapshot_position"]))
        reaches = place.position <= view
        if reaches and self._has_start:
            return view
        # A stream by GTID starts after transactions that are in the binlog, but perhaps not committed yet.
        # And events between transactions move the stream's place, but not that of views. The server reads
        # its binlog for the answer, so it is asked only now and then.
        if self._has_start and attempt % _ASKED_EVERY != _ASKED_EVERY - 1:
            return None
        covers = self._covers(connection, view, place.gtid_set)
        if covers or (covers is None and reaches):
            self._has_start = True
            return view
        return None

    def _covers(self, connection: Connection, view: BinlogPosition, gtid_set: str | None) -> bool | None:
        """Whether a view has these transactions; None if the server has no GTIDs."""
        executed = gtid_set_at(connection, view.file, view.position)
        if gtid_set is None or executed is None:
            return None
        with explained(connection):
            logged = connection.query("SELECT @@GLOBAL.gtid_binlog_pos")[0][0]
        # The stream may have been in domains that were deleted from the server since.
        wanted = MariadbGtidSet.parse(gtid_set).within(MariadbGtidSet.parse(logged or ""))
        return not wanted.ahead_of(MariadbGtidSet.parse(executed))


class TableLocks:
    """For all other servers; needs the privilege LOCK TABLES.

    A table of an engine without transactions is locked until it is read.
    """

    reads_together = False

    @contextmanager
    def open(
        self, readers: Readers, place: Place, tables: Sequence[str], *, has_views: bool, as_one: bool = False
    ) -> Iterator[High]:
        """See `Views.open`."""
        with ExitStack() as stack:
            with ExitStack() as locked:
                locked.enter_context(self._locked(readers.source, tables))
                if has_views:
                    with explained(readers.rows):
                        readers.rows.execute(_OPEN_VIEW)
                    stack.enter_context(_ended(readers.rows))
                else:
                    stack.push(locked.pop_all())
                here = end_of_binlog(readers.source)
            yield lambda: here

    @contextmanager
    def _locked(self, connection: Connection, tables: Sequence[str]) -> Iterator[None]:
        try:
            connection.execute(f"SET SESSION lock_wait_timeout = {_LOCK_SECONDS}")
            greeting = connection.greeting
            if greeting.flavor != "mysql" or greeting.version < _LOCKS_ARE_COMPLETE_SINCE:
                connection.execute(
                    "SET SESSION autocommit = 0, innodb_table_locks = 1, "
                    f"innodb_lock_wait_timeout = {_LOCK_SECONDS}"
                )
            connection.execute(f"LOCK TABLES {', '.join(f'{table} READ' for table in tables)}")
        except ServerError as error:
            # Of several tables InnoDB may have locked some.
            connection.execute("ROLLBACK")
            shown = ", ".join(tables)
            if error.code == _LOCK_TIMEOUT:
                raise TableBusy(f"{shown} is in use by transactions that do not end") from error
            if error.code in _DENIED:
                raise EngineError(
                    f"user '{connection.user}' may not lock {shown}, which its snapshot needs for an "
                    f"instant: run GRANT SELECT, LOCK TABLES ON {tables[0].partition('.')[0]}.* TO "
                    f"{account_in_words(connection)} there"
                ) from error
            raise explain(error, context_of(connection)) from error
        try:
            yield
        finally:
            connection.execute("UNLOCK TABLES")


@contextmanager
def _ended(connection: Connection) -> Iterator[None]:
    """End the transaction after the `with` block, unless the connection is lost in it."""
    try:
        yield
    finally:
        if connection.is_open:
            connection.execute("COMMIT")


def views_for(facts: SourceFacts, connection: Connection, prepared: PreparedTransactions) -> Views:
    """The method for a server; `prepared`: the prepared transactions of the server that is read."""
    if facts.flavor == "mysql" and facts.gtid_mode == "ON":
        return Watermarks(prepared)
    return ConsistentSnapshots(prepared) if gives_places(connection) else TableLocks()
