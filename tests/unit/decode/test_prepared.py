"""What a batch says of XA transactions, wherever the stream is cut into batches."""

from __future__ import annotations

import pytest

from engine.binlog.position import BinlogPosition
from engine.net.batching.batcher import Batcher
from engine.net.batching.schema_follower import Definitions, SchemaFollower
from engine.pipeline.messages import PreparedEntries, Result, XaFacts
from engine.schema.model import SchemaModel
from tests.support.batches import decode_all, feed, packets_of
from tests.support.binlog_builder import Part, binlog
from tests.support.made_events import gtid, query
from tests.support.made_transactions import XID, plain, prepared


def results(parts: list[Part], batch_bytes: int = 1 << 16) -> list[Result]:
    model = SchemaModel("mysql")
    definitions = Definitions(numbers_unknown=True)
    follower = SchemaFollower(model, "mysql", definitions, lambda: BinlogPosition("binlog.000001", 4))
    reader = Batcher(
        follower.describe,
        file="binlog.000001",
        checksum_algorithm=1,
        batch_bytes=batch_bytes,
        gtid_set="",
        schema=follower,
    )
    decoded = decode_all(list(feed(reader, packets_of(binlog(parts)), [])))
    assert decoded.error is None
    return [result for result in decoded.results if result.ordinals]


def test_entries_of_a_prepared_transaction() -> None:
    (result,) = results([*plain(1, 1), *prepared(2, 2, 3), *plain(3, 4)])
    # XA START, two rows, XA END and XA PREPARE itself, which is not one of them.
    assert result.xa == XaFacts([PreparedEntries(XID, 2, 5)], [])


def test_the_first_of_a_batch_may_have_begun_before() -> None:
    (result,) = results([*prepared(1, 2), *plain(2, 4)])
    assert result.xa == XaFacts([PreparedEntries(XID, 0, 3)], [])


def test_one_that_is_committed_in_the_same_batch() -> None:
    commit = [gtid(2), query(f"XA COMMIT {XID}")]
    (result,) = results([*prepared(1, 1), *commit, *prepared(3, 2)])
    assert result.xa == XaFacts([PreparedEntries(XID, 6, 8)], [XID])


def test_a_batch_ends_with_the_rollback() -> None:
    first, second = results([*prepared(1, 1), gtid(2), query(f"XA ROLLBACK {XID}"), *plain(3, 2)])
    assert [change.rolled_back for change in first.status.schema_changes] == [None, XID]
    assert first.statement is not None and first.statement.gtid is not None
    assert first.xa == XaFacts([PreparedEntries(XID, 0, 3)], [])
    assert second.statement is None and second.xa is None


@pytest.mark.parametrize("batch_bytes", [300, 1000, 5000])
def test_one_that_is_larger_than_a_batch(batch_bytes: int) -> None:
    found = results([*plain(1, 1), *prepared(2, *range(100)), *plain(3, 4)], batch_bytes)
    facts = [result.xa for result in found if result.xa]
    assert len(found) > 1
    assert [entries.xid for entries in facts[0].prepared] == [XID]
    assert len(facts) == 1


def test_nothing_without_xa() -> None:
    found = results([*plain(1, 1), gtid(2), query("SET PASSWORD = 'x'"), gtid(3), query("FLUSH TABLES")])
    assert all(result.xa is None for result in found)
