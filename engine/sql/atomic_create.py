"""MySQL's CREATE TABLE … SELECT as a script can repeat it.

In row format the server logs it with the table option START TRANSACTION, which has the rows follow in the
same transaction. A session in which it is executed takes nothing but BINLOG statements then.
"""

from __future__ import annotations

from engine.schema.session import StatementSession
from engine.schema.tokens import TokenError, tokenize


def without_start_transaction(statement: str, session: StatementSession) -> str:
    """The statement without this option, which comes after the table's columns, or last."""
    if "TRANSACTION" not in statement.upper():
        return statement
    try:
        tokens = tokenize(statement, session)
    except TokenError:
        return statement
    depth = 0
    for before, start, option in zip(tokens, tokens[1:], tokens[2:], strict=False):
        depth += (before.upper == "(") - (before.upper == ")")
        found = depth == 0 and (start.upper, option.upper) == ("START", "TRANSACTION")
        if found and (before.upper == ")" or option is tokens[-1]):
            return statement[: before.end] + statement[option.end :]
    return statement
