"""One column of a table, as the binlog and the server's catalog define it."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """One column of a table: what the binlog contains about it and, for the rest, the server's catalog."""

    name: str
    type_code: int
    """The real type (`MYSQL_TYPE_*`): STRING columns that are ENUM or SET have these types."""
    metadata: int
    """The table map's metadata of the column: one byte, or two little-endian ones; 0 if it has none.
    For STRING, ENUM and SET, whose two bytes combine real type and length: the length alone. For the old
    TIMESTAMP, DATETIME and TIME, which have none: fraction digits from the catalog (MariaDB 5.3 to 10.0)."""
    unsigned: bool | None = None
    collation: int | None = None
    """Collation id of a character column; 63 is binary; None if unknown."""
    charset: str | None = None
    """Character set name if the catalog has it; takes precedence over `collation`."""
    members: tuple[str, ...] | None = None
    """ENUM or SET members in order."""
    geometry_type: int | None = None
    dimension: int | None = None
    declared: str | None = None
    """The type's name if only the catalog has it (MariaDB's uuid, inet6, json alias…), in lower case."""
    nullable: bool = True
    visible: bool | None = None
    """None if unknown."""

    @property
    def kind(self) -> tuple[object, ...]:
        """Everything but the name: columns of one kind are decoded alike."""
        return self[1:]
