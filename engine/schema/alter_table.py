"""Reads ALTER TABLE into the actions that change columns or rows.

A table gives the reader of each clause by its first words; clauses without effect are stepped over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from engine.schema.alter_actions import (
    Action,
    AddColumn,
    AddKey,
    AddPeriod,
    ChangeColumn,
    ConvertCharset,
    DropColumn,
    DropKey,
    DropPeriod,
    ExchangePartition,
    LoseRows,
    PartitionToTable,
    RenameColumn,
    RenameKey,
    RenameTo,
    SetDefault,
    SetOptions,
    SetVersioning,
    SetVisibility,
    TableToPartition,
)
from engine.schema.column_clauses import read_column
from engine.schema.create_table import read_key, read_period, starts_key, starts_period
from engine.schema.default_values import read_default
from engine.schema.statements import AlterTable
from engine.schema.table_options import OptionFields, read_option, skip_partitions
from engine.schema.token_reader import TokenReader, UnexpectedTokenError

_PARTITION_VERBS_WITHOUT_LOSS = frozenset(
    {"ANALYZE", "CHECK", "COALESCE", "OPTIMIZE", "REBUILD", "REORGANIZE", "REPAIR"}
)
_WITHOUT_COMMA = frozenset({"PARTITION", "REMOVE"})
"""First words of the clauses that follow others without a comma: PARTITION BY and REMOVE PARTITIONING."""


def read_alter_table(reader: TokenReader, *, ignore: bool) -> AlterTable:
    """The statement from after TABLE. Raises `UnexpectedTokenError`."""
    if_exists = reader.take("IF", "EXISTS")
    table = reader.table()
    reader.skip_wait()
    actions: list[Action] = []
    while not reader.at_end:
        actions.extend(_clause(reader))
        if not (reader.take(",") or reader.at_end or reader.upper in _WITHOUT_COMMA):
            raise reader.unexpected("a comma")
    if sum(isinstance(action, RenameTo) for action in actions) > 1:
        raise UnexpectedTokenError("more than one new name of the table")
    return AlterTable(table, tuple(actions), if_exists, ignore)


def _clause(reader: TokenReader) -> Iterator[Action]:
    read = _CLAUSES.get(reader.upper)
    if read is not None:
        start = reader.position
        reader.step()
        action = read(reader)
        if action is not None:
            yield from action
            return
        reader.position = start
    options = OptionFields()
    if not read_option(reader, options):
        raise reader.unexpected("a clause of ALTER TABLE")
    # Options may follow each other without commas.
    while reader.upper not in _CLAUSES and read_option(reader, options):
        pass
    yield SetOptions(options.frozen())


Actions = tuple[Action, ...] | list[Action] | None
"""None: the first word is not the clause that it looked like, but an option's name."""


def _add(reader: TokenReader) -> Actions:
    if reader.take("SYSTEM", "VERSIONING"):
        return [SetVersioning(True)]
    if starts_period(reader):
        return [AddPeriod(read_period(reader))]
    if reader.take("PARTITION"):
        _skip_partition_clause(reader)
        return []
    if starts_key(reader):
        key = read_key(reader)
        return [AddKey(key)] if key is not None else []
    reader.take("COLUMN")
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    if reader.take("("):
        return _added_list(reader, if_not_exists)
    column = read_column(reader)
    return [AddColumn(column, _place(reader), if_not_exists)]


def _added_list(reader: TokenReader, if_not_exists: bool) -> list[Action]:
    actions: list[Action] = []
    while True:
        if starts_period(reader):
            actions.append(AddPeriod(read_period(reader)))
        elif starts_key(reader):
            key = read_key(reader)
            if key is not None:
                actions.append(AddKey(key))
        else:
            actions.append(AddColumn(read_column(reader), None, if_not_exists))
        if not reader.take(","):
            break
    reader.expect(")")
    return actions


def _place(reader: TokenReader) -> str | None:
    if reader.take("FIRST"):
        return ""
    return reader.column() if reader.take("AFTER") else None


def _drop(reader: TokenReader) -> Actions:
    if reader.take("SYSTEM", "VERSIONING"):
        return [SetVersioning(False)]
    if starts_period(reader):
        reader.step()
        reader.take("IF", "EXISTS")
        reader.expect("FOR")
        return [] if reader.name().upper() == "SYSTEM_TIME" else [DropPeriod()]
    if reader.take("PARTITION"):
        _skip_partition_clause(reader)
        return [LoseRows()]
    if reader.take("PRIMARY", "KEY") or reader.take("CONSTRAINT", "PRIMARY", "KEY"):
        return [DropKey(None)]
    if reader.take("FOREIGN", "KEY") or reader.take("CHECK"):
        reader.take("IF", "EXISTS")
        reader.column()
        return []
    if reader.take("INDEX") or reader.take("KEY") or reader.take("CONSTRAINT"):
        if_exists = reader.take("IF", "EXISTS")
        # Some servers allow the table's name before a key's, too.
        return [DropKey(reader.column(), if_exists)]
    reader.take("COLUMN")
    if_exists = reader.take("IF", "EXISTS")
    action = DropColumn(reader.column(), if_exists)
    if not reader.take("RESTRICT"):
        reader.take("CASCADE")
    return [action]


def _change(reader: TokenReader) -> Actions:
    reader.take("COLUMN")
    if_exists = reader.take("IF", "EXISTS")
    name = reader.column()
    column = read_column(reader)
    return [ChangeColumn(name, column, _place(reader), if_exists)]


def _modify(reader: TokenReader) -> Actions:
    reader.take("COLUMN")
    if_exists = reader.take("IF", "EXISTS")
    column = read_column(reader)
    return [ChangeColumn(column.name, column, _place(reader), if_exists)]


def _rename(reader: TokenReader) -> Actions:
    if reader.take("COLUMN"):
        if_exists = reader.take("IF", "EXISTS")
        name = reader.column()
        reader.expect("TO")
        return [RenameColumn(name, reader.column(), if_exists)]
    if reader.take("INDEX") or reader.take("KEY"):
        reader.take("IF", "EXISTS")
        name = reader.name()
        reader.expect("TO")
        return [RenameKey(name, reader.name())]
    if not (reader.take("TO") or reader.take("AS")):
        reader.take("=")
    return [RenameTo(reader.table())]


def _alter(reader: TokenReader) -> Actions:
    if reader.take("INDEX") or reader.take("KEY"):
        reader.take("IF", "EXISTS")
        reader.name()
        reader.skip_clause()
        return []
    if reader.take("CHECK") or reader.take("CONSTRAINT"):
        reader.name()
        reader.skip_clause()
        return []
    reader.take("COLUMN")
    if_exists = reader.take("IF", "EXISTS")
    name = reader.column()
    if reader.take("DROP"):
        if reader.take("MASKING", "POLICY"):
            return []
        reader.expect("DEFAULT")
        return [SetDefault(name, None, if_exists)]
    reader.expect("SET")
    if reader.take("MASKING", "POLICY"):
        reader.name()
        return []
    if reader.take("DEFAULT"):
        return [SetDefault(name, read_default(reader), if_exists)]
    visible = reader.take("VISIBLE")
    if not visible:
        reader.expect("INVISIBLE")
    return [SetVisibility(name, visible)]


def _convert(reader: TokenReader) -> Actions:
    if reader.take("PARTITION"):
        reader.name()
        reader.expect("TO", "TABLE")
        table = reader.table()
        reader.skip_clause()
        return [LoseRows(), PartitionToTable(table)]
    if reader.take("TABLE"):
        table = reader.table()
        reader.expect("TO")
        reader.skip_clause()
        return [LoseRows(), TableToPartition(table)]
    reader.expect("TO")
    if not reader.take("CHARSET"):
        if not reader.take("CHARACTER"):
            reader.expect("CHAR")
        reader.expect("SET")
    charset = reader.charset()
    collation = None
    if reader.take("COLLATE"):
        reader.take("=")
        collation = reader.charset()
    return [ConvertCharset(charset, collation)]


def _exchange(reader: TokenReader) -> Actions:
    reader.expect("PARTITION")
    reader.name()
    reader.expect("WITH", "TABLE")
    table = reader.table()
    if reader.take("WITH") or reader.take("WITHOUT"):
        reader.expect("VALIDATION")
    return [ExchangePartition(table)]


def _truncate(reader: TokenReader) -> Actions:
    reader.expect("PARTITION")
    _skip_partition_clause(reader)
    return [LoseRows()]


def _partition_without_loss(reader: TokenReader) -> Actions:
    if not reader.take("PARTITION"):
        return None
    _skip_partition_clause(reader)
    return []


def _tablespace(reader: TokenReader) -> Actions:
    """DISCARD and IMPORT [PARTITION …] TABLESPACE."""
    while not reader.take("TABLESPACE"):
        reader.step()
    return [LoseRows()]


def _skip_partition_clause(reader: TokenReader) -> None:
    """Names of partitions may be separated by commas, so a partition clause goes on to the end."""
    while not reader.at_end:
        reader.step()


def _partition_by(reader: TokenReader) -> Actions:
    skip_partitions(reader)
    return []


def _order_by(reader: TokenReader) -> Actions:
    reader.expect("BY")
    while True:
        reader.column()
        if not reader.take("ASC"):
            reader.take("DESC")
        # A clause after ORDER BY would start with a word that cannot be a column's name.
        if not (reader.upper == "," and reader.following().upper not in _CLAUSES):
            return []
        reader.step()


def _partitioning(reader: TokenReader) -> Actions:
    reader.expect("PARTITIONING")
    return []


def _keys(reader: TokenReader) -> Actions:
    reader.expect("KEYS")
    return []


def _execution(reader: TokenReader) -> Actions:
    reader.take("=")
    reader.step()
    return []


def _with(reader: TokenReader) -> Actions:
    return [SetVersioning(True)] if reader.take("SYSTEM", "VERSIONING") else _validation(reader)


def _validation(reader: TokenReader) -> Actions:
    return [] if reader.take("VALIDATION") else None


def _nothing(reader: TokenReader) -> Actions:
    return []


def _secondary(reader: TokenReader) -> Actions:
    """SECONDARY_LOAD and SECONDARY_UNLOAD [PARTITION (…)]."""
    reader.skip_clause()
    return []


_CLAUSES: Mapping[str, Callable[[TokenReader], Actions]] = {
    "ADD": _add,
    "DROP": _drop,
    "CHANGE": _change,
    "MODIFY": _modify,
    "RENAME": _rename,
    "ALTER": _alter,
    "CONVERT": _convert,
    "EXCHANGE": _exchange,
    "TRUNCATE": _truncate,
    **dict.fromkeys(_PARTITION_VERBS_WITHOUT_LOSS, _partition_without_loss),
    "DISCARD": _tablespace,
    "IMPORT": _tablespace,
    "PARTITION": _partition_by,
    "ORDER": _order_by,
    "REMOVE": _partitioning,
    "UPGRADE": _partitioning,
    "ENABLE": _keys,
    "DISABLE": _keys,
    "FORCE": _nothing,
    "ALGORITHM": _execution,
    "LOCK": _execution,
    "WITH": _with,
    "WITHOUT": _validation,
    "SECONDARY_LOAD": _secondary,
    "SECONDARY_UNLOAD": _secondary,
}
"""First word of a clause → its reader."""
