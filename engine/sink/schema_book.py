"""The schema versions of all tables.

A table's rows get a new version when their schema changes; a commit lists the versions that no commit listed
before.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from engine.output.commit import SchemaVersion, TableKey
from engine.schema.changes import TableName


class SchemaBook:
    """Every schema version of every table."""

    def __init__(self, logged: Iterable[SchemaVersion]) -> None:
        self._versions: dict[TableKey, list[SchemaVersion]] = {}
        """The oldest first."""
        self._logged: set[SchemaVersion] = set()
        for version in sorted(logged, key=attrgetter("schema_version")):
            self._versions.setdefault((version.database, version.table), []).append(version)
            self._logged.add(version)

    def version(self, database: str, table: str, arrow: bytes) -> SchemaVersion:
        """The version of the table's next rows: the newest one, or if that has another schema, a new one.

        A schema that the table had before gets a new number, too: readers that begin between two commits take
        the newest version for the one of the rows that follow.
        """
        versions = self._versions.setdefault((database, table), [])
        if not versions or versions[-1].arrow != arrow:
            number = versions[-1].schema_version + 1 if versions else 1
            versions.append(SchemaVersion(database, table, number, arrow))
        return versions[-1]

    def versions(self, name: TableName) -> list[list[SchemaVersion]]:
        """A table's versions, oldest first; if its name is empty, those of each table of the database."""
        if name.table:
            known = self._versions.get((name.database, name.table))
            return [] if known is None else [known]
        return [
            versions
            for (database, table), versions in self._versions.items()
            if database == name.database and table
        ]

    def is_logged(self, version: SchemaVersion) -> bool:
        """Whether a commit has listed it."""
        return version in self._logged

    def log(self, versions: Iterable[SchemaVersion]) -> tuple[SchemaVersion, ...]:
        """The ones of `versions` that no commit has listed yet; they count as listed from then on."""
        new = tuple(version for version in dict.fromkeys(versions) if version not in self._logged)
        self._logged.update(new)
        return new
