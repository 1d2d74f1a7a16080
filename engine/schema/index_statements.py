"""Reads CREATE INDEX and DROP INDEX as the clauses of ALTER TABLE that they are."""

from __future__ import annotations

from engine.schema.alter_actions import Action, AddKey, DropKey
from engine.schema.create_table import read_key_algorithm, read_key_columns
from engine.schema.statements import AlterTable
from engine.schema.token_reader import TokenReader

_EXECUTION = frozenset({"ALGORITHM", "LOCK"})


def read_create_index(reader: TokenReader, kind: str, *, replace: bool) -> AlterTable:
    """CREATE INDEX from after INDEX; `kind`: the word before it, if any. Raises `UnexpectedTokenError`."""
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    name = reader.name()
    hashed = read_key_algorithm(reader)
    reader.expect("ON")
    table = reader.table()
    key = read_key_columns(reader, kind, hashed=hashed, if_not_exists=if_not_exists, name=name)
    _expect_execution_options(reader)
    actions: list[Action] = [DropKey(name, if_exists=True)] if replace else []
    if key is not None:
        actions.append(AddKey(key))
    return AlterTable(table, tuple(actions))


def read_drop_index(reader: TokenReader) -> AlterTable:
    """DROP INDEX from after INDEX. Raises `UnexpectedTokenError`."""
    if_exists = reader.take("IF", "EXISTS")
    name = reader.name()
    reader.expect("ON")
    table = reader.table()
    reader.skip_wait()
    _expect_execution_options(reader)
    return AlterTable(table, (DropKey(name, if_exists),))


def _expect_execution_options(reader: TokenReader) -> None:
    while not reader.at_end:
        if not reader.take_one_of(_EXECUTION):
            raise reader.unexpected("the end")
        reader.take("=")
        reader.step()
