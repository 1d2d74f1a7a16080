"""What the text of CREATE TABLE does not show where the server wrote it itself."""

from __future__ import annotations

import re
from dataclasses import replace

from engine.binlog.events.statements import CREATE_BY_SERVER
from engine.schema.names import folded
from engine.schema.session import StatementSession
from engine.schema.statements import CreateTable

_FIRST_OPTION = " ENGINE="
_COUNTER_WITHOUT_NOT_NULL = re.compile(r"(?<! NOT NULL) AUTO_INCREMENT(?=,?\n| COMMENT )")


def with_omissions(text: str, statement: CreateTable, session: StatementSession) -> CreateTable:
    """The statement of this text, with what the server may have left out if it wrote the text.

    In some SQL modes it leaves out the table's options, and those character sets of columns that the options
    imply; and always the NULL of a column that is AUTO_INCREMENT. It writes backslashes as escapes, while
    clients with NO_BACKSLASH_ESCAPES do not.
    """
    if CREATE_BY_SERVER.match(text) is None:
        return statement
    has_options = _FIRST_OPTION in text[text.rfind("\n)") :]
    foreign_escapes = "\\" in text and not session.backslash_escapes
    return replace(
        statement,
        options_left_out=session.omits_table_options and not has_options,
        misleading=foreign_escapes or _may_lack_null(text, statement),
    )


def _may_lack_null(text: str, statement: CreateTable) -> bool:
    """Whether an AUTO_INCREMENT column may be one that can be NULL, which those of primary keys cannot."""
    if _COUNTER_WITHOUT_NOT_NULL.search(text) is None:
        return False
    counters = {folded(clause.name) for clause in statement.columns if clause.auto_increment}
    primary = {folded(clause.name) for clause in statement.columns if clause.primary}
    primary |= {folded(part.column) for key in statement.keys if key.primary for part in key.parts}
    return not counters <= primary
