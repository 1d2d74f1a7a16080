"""Parts of a stream through batcher and decoder."""

from __future__ import annotations

from typing import Any

from tests.support.batches import Decoded, decode_all, feed, packets_of
from tests.support.binlog_builder import MYSQL, Part, binlog
from tests.support.transaction_pictures import batcher


def decode(parts: list[Part], version: str = MYSQL, **options: Any) -> Decoded:
    return decode_all(list(feed(batcher(**options), packets_of(binlog(parts, version)), [])))
