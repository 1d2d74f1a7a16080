"""Whether the text of a statement shows what it defines, also where the server wrote it itself."""

from __future__ import annotations

import re

from engine.binlog.events.statements import WRITTEN_BY_SERVER
from engine.schema.session import StatementSession

_FIRST_OPTION = " ENGINE="
_NULLABLE_COUNTER = re.compile(r"(?<! NOT NULL) AUTO_INCREMENT(?!=)")


def may_mislead(text: str, session: StatementSession) -> bool:
    """Whether the server may have written CREATE TABLE in a form that does not show what the table is.

    In some SQL modes it leaves out options and attributes of columns; MariaDB leaves out the NULL of a column
    that is AUTO_INCREMENT. It writes backslashes as escapes, while clients with NO_BACKSLASH_ESCAPES do not.
    """
    if WRITTEN_BY_SERVER.match(text) is None:
        return False
    without_options = session.omits_table_options and _FIRST_OPTION not in text[text.rfind("\n)") :]
    foreign_escapes = "\\" in text and not session.backslash_escapes
    return without_options or foreign_escapes or _NULLABLE_COUNTER.search(text) is not None
