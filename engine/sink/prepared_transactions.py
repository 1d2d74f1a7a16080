"""The prepared XA transactions at the last transaction end that the writer has taken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.output.prepared import PreparedTransaction, XaRollback
from engine.pipeline.messages import Result


class PreparedTransactions:
    """Begins with those that the output's last commit lists."""

    def __init__(self, listed: Iterable[PreparedTransaction]) -> None:
        self._prepared = {transaction.xid: transaction for transaction in listed}

    @property
    def listed(self) -> tuple[PreparedTransaction, ...]:
        """What a commit lists."""
        return tuple(self._prepared.values())

    @property
    def rolled_back(self) -> PreparedTransaction | None:
        """One whose rows are to be undone; None if there is none."""
        return next((each for each in self._prepared.values() if each.rolled_back is not None), None)

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
            transaction = self._prepared[changes[-1].rolled_back]
            self._prepared[transaction.xid] = replace(transaction, rolled_back=rollback)

    def undone(self, xid: str) -> None:
        """The rows of a transaction that was rolled back are undone."""
        del self._prepared[xid]
