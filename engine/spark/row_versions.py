"""The rows of MariaDB's tables with system versioning that are the table's present ones.

A present row ends at the latest time that the server knows, a past one when it was changed. The server logs
an UPDATE as the update of a present row and the insert of a past one, a DELETE as an update that sets the
end, and DELETE HISTORY as deletes of past rows. Without the images of past rows, the changes of present ones
are left; of a DELETE that is its preimage.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce

import pyarrow as pa

_ENDS_OF_TIME = tuple(
    datetime.fromtimestamp(2**bits - 1, UTC).replace(microsecond=999_999) for bits in (31, 32)
)
"""The latest TIMESTAMP; the second one from MariaDB 11.5 on, where the platform has 64 bits."""
_LAST_TRANSACTION = Decimal(2**64 - 1)
"""The end of present rows in tables whose versions are numbers of transactions."""


def are_present(period: pa.RecordBatch) -> pa.BooleanArray:
    """For each row, from the columns of its period, whether it is a present row.

    Which of the columns is the end is not known, nor has to be: none begins at the end of time. An image
    without these columns (`binlog_row_image` MINIMAL) is one of a present row.
    """
    # Only here: every streaming query starts a process that imports this module to plan only.
    import pyarrow.compute as pc

    columns = period.columns
    never_end = (pc.is_in(column, _never(column.type)) for column in columns)
    lack_periods = reduce(pc.and_, map(pc.is_null, columns))
    return reduce(pc.or_, never_end, lack_periods)


def _never(data_type: pa.DataType) -> pa.Array:
    """The values of that type which mean that a row has not ended."""
    if pa.types.is_decimal(data_type):
        return pa.array([_LAST_TRANSACTION], data_type)
    if pa.types.is_string(data_type):
        return pa.array([f"{end:%F %T.%f}" for end in _ENDS_OF_TIME], data_type)
    return pa.array(_ENDS_OF_TIME, data_type)
