"""Letter case in names: of tables and databases as table maps contain them, and of columns in comparisons."""

from __future__ import annotations

from engine.dataclass import dataclass
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
        return folded(name) if self.lower_case_table_names else name


def folded(name: str) -> str:
    """A name in lower case, as servers compare those of columns and keys: one letter for each.

    Python has other rules for words (ß is ss, Σ at the end, İ).
    """
    return name.lower() if name.isascii() else "".join(character.lower()[0] for character in name)


AS_WRITTEN = NameRules()
