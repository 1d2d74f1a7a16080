"""How the names of tables and databases are stored and compared: `lower_case_table_names`."""

from __future__ import annotations

from dataclasses import dataclass

from engine.schema.changes import TableName

STORED_IN_LOWER_CASE = 1
COMPARED_IN_LOWER_CASE = 2


@dataclass(frozen=True, slots=True)
class NameRules:
    """A server's setting: 0 exact, 1 stored and compared in lower case, 2 only compared."""

    lower_case_table_names: int = 0

    def stored(self, name: TableName) -> TableName:
        """The name as the server stores it, and as table maps contain it."""
        return _lower(name) if self.lower_case_table_names == STORED_IN_LOWER_CASE else name

    def stored_database(self, name: str) -> str:
        """The same for a database."""
        return name.lower() if self.lower_case_table_names == STORED_IN_LOWER_CASE else name

    def compared(self, name: TableName) -> TableName:
        """Equal for names that denote the same table."""
        return _lower(name) if self.lower_case_table_names else name

    def compared_database(self, name: str) -> str:
        """Equal for names that denote the same database."""
        return name.lower() if self.lower_case_table_names else name


def _lower(name: TableName) -> TableName:
    return TableName(name.database.lower(), name.table.lower())
