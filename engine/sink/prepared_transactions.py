"""The XA transactions that are prepared at the last transaction end that the writer has taken."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from engine.output.prepared import PreparedTransaction, UndoneTransaction, XaRollback
from engine.pipeline.messages import Result, TableResult
from engine.sink.remembered_rows import RememberedRows
from engine.sink.staging import Rows
from engine.sink.undone_rows import Places, undone_rows


class PreparedTransactions:
    """Begins with those that the output's last commit lists."""

    def __init__(self, listed: Iterable[PreparedTransaction]) -> None:
        self._prepared = {transaction.xid: transaction for transaction in listed}
        self.rolled_back = self._next_rolled_back()
        """The next one whose rows are to be undone; None if there is none."""
        self._rows = RememberedRows()
        self._undone: list[UndoneTransaction] = []

    @property
    def listed(self) -> tuple[PreparedTransaction, ...]:
        """What a commit lists."""
        return tuple(self._prepared.values())

    def look_at(self, result: Result, frames: Sequence[Rows], last_seq: int, *, is_open: bool) -> None:
        """As `RememberedRows.look_at`."""
        self._rows.look_at(result, frames, last_seq, is_open=is_open)

    def follow(self, result: Result, commit: int, before: int, before_transaction: int) -> None:
        """A result that ends a transaction was taken, for a commit of that number.

        `before`: the `_seq` before its entries; `before_transaction`: the one before those of the first
        transaction that ends in it.
        """
        if result.xa is not None:
            for xid in result.xa.committed:
                self._prepared.pop(xid, None)
            for entries in result.xa.prepared:
                first = before + entries.first if entries.first else before_transaction + 1
                last = before + entries.last
                if first <= last:
                    self._prepared[entries.xid] = PreparedTransaction(entries.xid, commit, first, last)
        facts, changes = result.statement, result.status.schema_changes
        # One that was prepared before the output began is not known, and its rows are not there.
        if facts is not None and changes[-1].rolled_back in self._prepared:
            rollback = XaRollback(changes[-1].position, facts.gtid, facts.commit_timestamp)
            self._roll_back(changes[-1].rolled_back, rollback)

    def survive(self, xids: Collection[str], loss: XaRollback) -> int:
        """The server was started, and has these left; returns how many of the others are lost.

        They are rolled back as by `loss`.
        """
        lost = [xid for xid, each in self._prepared.items() if xid not in xids and each.rolled_back is None]
        for xid in lost:
            self._roll_back(xid, loss)
        return len(lost)

    def remembered(self) -> Iterator[tuple[TableResult, pa.RecordBatch]] | None:
        """What undoes `rolled_back`, if its rows are remembered."""
        transaction = self.rolled_back
        rows = None if transaction is None else self._rows.take(transaction.xid)
        if transaction is None or transaction.rolled_back is None or rows is None:
            return None
        return undone_rows(transaction.rolled_back, rows, Places(part.rows for part in rows))

    def rows_were_emptied(self) -> None:
        """Rows of a table from before do not count any more."""
        self._rows.clear()

    def undone(self, first_seq: int, last_seq: int) -> None:
        """The entries from `first_seq` to `last_seq` undo those of `rolled_back`."""
        assert self.rolled_back is not None
        transaction = self._prepared.pop(self.rolled_back.xid)
        self._rows.take(transaction.xid)
        self.rolled_back = self._next_rolled_back()
        self._undone.append(
            UndoneTransaction(transaction.first_seq, transaction.last_seq, first_seq, last_seq)
        )

    def _roll_back(self, xid: str, rollback: XaRollback) -> None:
        self._prepared[xid] = replace(self._prepared[xid], rolled_back=rollback)
        self.rolled_back = self._next_rolled_back()

    def _next_rolled_back(self) -> PreparedTransaction | None:
        return next((each for each in self._prepared.values() if each.rolled_back is not None), None)

    def seal(self) -> tuple[UndoneTransaction, ...]:
        """Those that are undone since the last call."""
        undone, self._undone = tuple(self._undone), []
        return undone
