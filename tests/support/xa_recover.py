"""The prepared XA transactions of a server, as tests end them."""

from __future__ import annotations

from typing import Any, NamedTuple


class Prepared(NamedTuple):
    """A transaction that is prepared."""

    gtrid: str
    bqual: str
    format_id: int

    @property
    def xid(self) -> str:
        """As statements name it; both parts are plain text."""
        return f"'{self.gtrid}','{self.bqual}',{self.format_id}"


def prepared_transactions(cursor: Any) -> list[Prepared]:
    """What XA RECOVER lists, which has text on MySQL and bytes on MariaDB."""
    cursor.execute("XA RECOVER")
    found = []
    for format_id, size, _, data in cursor.fetchall():
        text = data if isinstance(data, str) else data.decode()
        found.append(Prepared(text[:size], text[size:], format_id))
    return found
