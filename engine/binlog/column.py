"""One column of a table, as the binlog and the server's catalog describe it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, as the binlog and, where that is silent, the server's catalog describe it."""

    name: str
    type_code: int
    """The real type (`MYSQL_TYPE_*`): STRING columns that hold ENUM or SET are told apart already."""
    metadata: int
    """The table map's metadata of the column: one byte as it is, two bytes little-endian; 0 where none.
    For STRING, ENUM and SET (that share real_type, length packed in two bytes): the length alone. For the old
    TIMESTAMP, DATETIME and TIME, which have none: fraction digits by the catalog (MariaDB 5.3 to 10.0)."""
    unsigned: bool | None = None
    collation: int | None = None
    """Collation id of a character column; 63 is binary; null where nobody said."""
    charset: str | None = None
    """Character set name where the catalog told it; wins over `collation`."""
    members: tuple[str, ...] | None = None
    """ENUM or SET members in order."""
    geometry_type: int | None = None
    dimension: int | None = None
    declared: str | None = None
    """The type's name where only the catalog knows it (MariaDB's uuid, inet6, json alias…), lower case."""
    nullable: bool = True
    visible: bool | None = None
    """None where nothing says it."""
