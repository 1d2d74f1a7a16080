"""What ALTER TABLE does to character sets: CONVERT TO CHARACTER SET, and the options of the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine.binlog.collations import BINARY, WIDTH, canonical, charset_of_collation
from engine.binlog.table_definition import UNKNOWN_CHARSET, ColumnDefinition
from engine.schema.alter_actions import Action, ConvertCharset, SetOptions
from engine.schema.altered_column import AlteredColumn
from engine.schema.collations import DEFAULT, default_collation
from engine.schema.column_types import (
    TEXT_TYPES,
    UncertainError,
    UnknownDefaultError,
    converted_type,
    members_type,
    resolve_collation,
    shows_binary,
    to_binary,
)
from engine.schema.columns import with_collation
from engine.schema.declarations import ColumnClause, TableOptions
from engine.schema.hidden_columns import LONG
from engine.schema.member_texts import MemberError, converted_members
from engine.schema.session import MARIADB_CHARSETS_IN_CONTEXT_SINCE, StatementSession

_CONVERT_COUNTS_SINCE = (5, 7, 0)
"""Before, MySQL may leave the table's default as it is if CONVERT TO changes no column."""
_COLLATION_STAYS_SINCE = (8, 0, 0)
"""DEFAULT CHARACTER SET after DEFAULT COLLATE keeps the collation if it belongs to the character set."""
_BINARY_STAYS_UNTIL = {"mysql": (8, 0, 0), "mariadb": MARIADB_CHARSETS_IN_CONTEXT_SINCE}
"""Before, a converted column with CHARACTER SET and BINARY gets a binary collation."""
_SHORT_FORMS = frozenset({"latin1", "ucs2"})
"""What the attributes ASCII and UNICODE stand for."""


class CharsetChange:
    """The clauses of one statement that concern character sets. Raises `UncertainError`.

    `converted_to`: the collation that CONVERT TO CHARACTER SET DEFAULT stands for.
    """

    def __init__(
        self,
        actions: Sequence[Action],
        session: StatementSession,
        database_collation: str | None,
        converted_to: str | None,
    ) -> None:
        self._session = session
        self._database_collation = database_collation
        self._actions = actions
        conversions = [action for action in actions if isinstance(action, ConvertCharset)]
        if len(conversions) > 1:
            raise UncertainError("which of several CONVERT TO counts")
        if conversions and self._has_option and not session.mariadb:
            raise UncertainError("which of CONVERT TO and the table's character set counts")
        self._target = self._collation_of(conversions[0], converted_to) if conversions else None

    def table_collation(self, before: str | None) -> str | None:
        """The table's default after the statement; None if it is not known."""
        collation = before
        for charset, named in self._named_charsets():
            collation = resolve_collation(charset, named, self._session, collation, self._database_collation)
        # In MariaDB CONVERT TO counts for columns then, and the option for the table's default.
        return collation if self._target is None or self._has_option else self._target

    def columns_collation(self, table_collation: str | None, *, is_new: bool) -> str | None:
        """The default of a column that the statement declares; `is_new`: that it adds."""
        if self._target is not None:
            return self._target
        named = self._named_charsets()
        charset, collation = named[-1] if named else (None, None)
        if charset not in (None, DEFAULT) and collation is None and not is_new and not self._session.mariadb:
            # The session's default for the character set is that of the table and of new columns only.
            return default_collation(charset, self._session.flavor, self._session.version)
        return table_collation

    def counts_for_table(self, columns: Iterable[AlteredColumn]) -> bool:
        """Whether a conversion certainly gives the table its default, although no column may change."""
        old = not self._session.mariadb and self._session.version < _CONVERT_COUNTS_SINCE
        return (
            self._target is None or not old or any(column.before != column.definition for column in columns)
        )

    def declared(self, clause: ColumnClause) -> ColumnClause:
        """The declaration as it counts beside a conversion."""
        kind = clause.type
        if self._target is None:
            return clause
        if self._session.mariadb and kind.name == "json":
            kind = replace(kind, name="longtext")
        if BINARY not in (kind.charset, kind.collation) and (kind.charset or kind.collation):
            # CONVERT TO CHARACTER SET counts for columns that the statement declares, too.
            if kind.name not in TEXT_TYPES:
                raise UncertainError(f"whether {clause.name} is text after a conversion")
            if kind.collation and not charset_of_collation(kind.collation):
                raise UncertainError(f"the collation of {clause.name} after a conversion")
            overrides = self._session.mariadb and not self._binary_stays and kind.collation is not None
            binary = kind.binary and not overrides and (kind.charset is None or self._keeps_binary(clause))
            kind = replace(kind, charset=None, collation=None, binary=binary)
        return replace(clause, type=kind)

    def check_length(self, clause: ColumnClause, before: ColumnDefinition, after: ColumnDefinition) -> None:
        """A changed column has the length of its declaration or, with a conversion, that of before."""
        if self._target is None:
            return
        mariadb = before.charset is not None and clause.type.name.endswith("text")
        if mariadb if self._session.mariadb else after.data_type in LONG:
            raise UncertainError(f"the length of {clause.name}, which is changed and converted at once")

    def convert(self, columns: Iterable[AlteredColumn]) -> None:
        """CONVERT TO CHARACTER SET: all text columns that the statement does not declare."""
        if self._target is not None:
            for column in columns:
                if column.clause is None:
                    column.definition = self._converted(column.definition, self._target)

    def _named_charsets(self) -> list[tuple[str | None, str | None]]:
        """The character set and the collation of each option that changes the table's default."""
        named: list[tuple[str | None, str | None]] = []
        for action in self._actions:
            if isinstance(action, SetOptions) and _names_charset(action.options):
                charset, collation = action.options.charset, action.options.collation
                # A character set after a collation that belongs to it changes nothing.
                before = named[-1][1] if named else None
                belongs = before is not None and charset == charset_of_collation(before)
                if collation or not belongs or self._session.version < _COLLATION_STAYS_SINCE:
                    named.append((charset, collation))
        return named

    @property
    def _has_option(self) -> bool:
        return bool(self._named_charsets())

    @property
    def _binary_stays(self) -> bool:
        return self._session.version < _BINARY_STAYS_UNTIL[self._session.flavor]

    def _keeps_binary(self, clause: ColumnClause) -> bool:
        if self._binary_stays and clause.type.charset in _SHORT_FORMS:
            raise UncertainError(f"whether {clause.name} stays binary after a conversion")
        return self._binary_stays

    def _collation_of(self, action: ConvertCharset, default: str | None) -> str:
        # Where DEFAULT is not of the context, COLLATE DEFAULT is as no COLLATE.
        ignored = action.collation == DEFAULT and not self._session.default_is_of_context
        named = None if ignored else action.collation
        collation = resolve_collation(action.charset, named, self._session, None, default)
        if collation is None:
            raise UnknownDefaultError("the database's default character set is not known")
        return collation

    def _converted(self, column: ColumnDefinition, collation: str) -> ColumnDefinition:
        if column.data_type not in TEXT_TYPES or column.charset in (None, BINARY):
            return column
        if column.charset == UNKNOWN_CHARSET:
            raise UncertainError(f"the character set of the column {column.name} is not known")
        old, new = canonical(column.charset or ""), charset_of_collation(collation) or BINARY
        column_type = column.column_type
        if column.members is not None:
            column_type = members_type(column.data_type, _converted_members(column.members, old, new))
        elif collation != BINARY:
            column_type = converted_type(column_type, WIDTH[old], WIDTH[new], self._session)
        column = replace(column, column_type=column_type)
        if collation != BINARY:
            return with_collation(column, collation, self._session)
        column_type = to_binary(column.column_type)
        charset = BINARY if shows_binary(column_type, self._session) else None
        return replace(column, column_type=column_type, charset=charset, collation=charset)


def _names_charset(options: TableOptions) -> bool:
    return options.charset is not None or options.collation is not None


def _converted_members(members: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    try:
        return converted_members(members, old, new)
    except MemberError as error:
        raise UncertainError(str(error)) from None
