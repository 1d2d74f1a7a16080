"""The names of tables and databases as table maps contain them: `lower_case_table_names`."""

from __future__ import annotations

from dataclasses import dataclass

from engine.schema.changes import TableName


@dataclass(frozen=True, slots=True)
class NameRules:
    """A server's setting: 0 names are as written, 1 and 2 letter case does not count.

    With 1 and 2 table maps contain lower case, although a catalog with 2 contains the written form.
    """

    lower_case_table_names: int = 0

    def stored(self, name: TableName) -> TableName:
        """The name in table maps: equal for names that denote the same table."""
        return TableName(self.stored_database(name.database), self._stored(name.table))

    def stored_database(self, database: str) -> str:
        """The same for a database."""
        return self._stored(database)

    def _stored(self, name: str) -> str:
        if not self.lower_case_table_names:
            return name
        # As servers do: one letter for each, while words have rules of their own (Σ at the end, İ).
        return "".join(character.lower()[0] for character in name)


AS_WRITTEN = NameRules()
