"""The identifiers of XA transactions (XIDs), in the form that they have in the binlog's statements.

There, a transaction ends at its XA PREPARE; XA COMMIT or XA ROLLBACK follows later, after other transactions.
Source: `serialize_xid` in MySQL's `xa_aux.h`.
"""

from __future__ import annotations

import re

_END = re.compile(
    r"XA\s+(?:COMMIT|ROLLBACK)\s+X'((?:[0-9a-f]{2})*)'\s*,\s*X'((?:[0-9a-f]{2})*)'\s*,\s*(-?\d+)",
    re.IGNORECASE,
)


def xid_text(gtrid: bytes, bqual: bytes, format_id: int) -> str:
    """The XID of these parts, such as `X'78',X'',1`."""
    # One place may have a large number as negative, and the other one not.
    return f"X'{gtrid.hex()}',X'{bqual.hex()}',{format_id & 0xFFFFFFFF}"


def ended_xid(statement: str) -> str | None:
    """The XID of a prepared transaction that an XA COMMIT or XA ROLLBACK ends, like `xid_text`.

    None for another statement.
    """
    found = _END.match(statement)
    if found is None:
        return None
    return xid_text(bytes.fromhex(found[1]), bytes.fromhex(found[2]), int(found[3]))
