"""Whether the text of a statement shows what it defines, also where the server wrote it itself."""

from __future__ import annotations

import re

from engine.binlog.events.statements import CREATE_BY_SERVER
from engine.schema.names import folded
from engine.schema.session import StatementSession
from engine.schema.statements import CreateTable

_FIRST_OPTION = " ENGINE="
_COUNTER_WITHOUT_NOT_NULL = re.compile(r"(?<! NOT NULL) AUTO_INCREMENT(?=,?\n| COMMENT )")


def may_mislead(text: str, statement: CreateTable, session: StatementSession) -> bool:
    """Whether the server may have written CREATE TABLE in a form that does not show what the table is.

    In some SQL modes it leaves out options and attributes of columns, and always the NULL of a column that is
    AUTO_INCREMENT. It writes backslashes as escapes, while clients with NO_BACKSLASH_ESCAPES do not.
    """
    if CREATE_BY_SERVER.match(text) is None:
        return False
    without_options = session.omits_table_options and _FIRST_OPTION not in text[text.rfind("\n)") :]
    foreign_escapes = "\\" in text and not session.backslash_escapes
    return without_options or foreign_escapes or _may_lack_null(text, statement)


def _may_lack_null(text: str, statement: CreateTable) -> bool:
    """Whether an AUTO_INCREMENT column may be one that can be NULL, which those of primary keys cannot."""
    if _COUNTER_WITHOUT_NOT_NULL.search(text) is None:
        return False
    counters = {folded(clause.name) for clause in statement.columns if clause.auto_increment}
    primary = {folded(clause.name) for clause in statement.columns if clause.primary}
    primary |= {folded(part.column) for key in statement.keys if key.primary for part in key.parts}
    return not counters <= primary
