"""The XA transactions that an output lists as prepared: whether its server has prepared them, too.

MariaDB writes XA PREPARE into the binlog first. If the server crashes before the storage engine has prepared
the transaction, its recovery rolls it back, and the binlog does not say so: the rows stay in the output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.config.output_place import OutputPlace
from engine.dataclass import dataclass
from engine.doctor.finding import Finding
from engine.output.commit_log import CommitLog

_WHAT = "XA transactions that the output has as prepared"


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """One that is prepared after the last commit."""

    xid: str
    """As in `engine.binlog.xids`."""
    tables: tuple[str, ...]
    """Those that it has changed, as `database.table`; empty if `vacuum` has removed the commit."""


def read_listed(out: OutputPlace) -> tuple[ListedTransaction, ...]:
    """What the last commit of an output lists. Raises `CommitLogError` and `OutputError`."""
    log = CommitLog(out)
    last = log.latest()
    if last is None or not last.prepared:
        return ()
    oldest = log.oldest_version()
    listed = []
    for transaction in last.prepared:
        files = () if transaction.commit < oldest else log.read(transaction.commit).files
        tables = {
            f"{file.database}.{file.table}"
            for file in files
            if file.table
            and file.first_seq <= transaction.last_seq
            and file.last_seq >= transaction.first_seq
        }
        listed.append(ListedTransaction(transaction.xid, tuple(sorted(tables))))
    return tuple(listed)


def check_listed(listed: Sequence[ListedTransaction], prepared: frozenset[str]) -> Iterator[Finding]:
    """Findings about those, one at least, that are not among what the server has `prepared`."""
    lost = [transaction for transaction in listed if transaction.xid not in prepared]
    if not lost:
        yield Finding(_WHAT, f"{len(listed)}, which the server has prepared")
        return
    tables = tuple(sorted({table for transaction in lost for table in transaction.tables}))
    yield Finding(
        _WHAT,
        f"{', '.join(transaction.xid for transaction in lost)}: not prepared on the server",
        "advice",
        "prepared on the server",
        "a crash of the server may have rolled them back without a trace in its binlog (docs/operations.md)",
        "if this stays so when the run has caught up, read the tables again with binlog-engine snapshot",
        tables,
    )
