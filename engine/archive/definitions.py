"""Table definitions that a user gives for an archive: an output's schema history, or a file of statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from engine.archive.files import ArchiveError, ArchiveFile
from engine.binlog.files import MAGIC_LENGTH
from engine.binlog.position import BinlogPosition
from engine.binlog.table_definition import TableDefinition
from engine.config.output_place import OutputPlace
from engine.output.commit_log import CommitLog
from engine.output.files import opening
from engine.schema.changes import SchemaChange, TableName
from engine.schema.model import SchemaModel
from engine.schema.schema_file import read_schema_file

Given = Mapping[TableName, TableDefinition]


def starting_definitions(
    schemas: OutputPlace | None, first: ArchiveFile, flavor: str
) -> tuple[SchemaModel, Given]:
    """The model at the start of the `first` file, and definitions for tables that the model does not have.

    `schemas`: the folder or URL of an output that followed the same server, whose history says what was in
    force there; or a file of statements; None for neither. Raises `EngineError` for one that cannot be read.
    """
    model = SchemaModel(flavor)
    if schemas is None:
        return model, {}
    if isinstance(schemas, Path) and not schemas.exists():
        raise ArchiveError(
            f"`schemas` is {schemas}, which does not exist: give an output folder, or a file of CREATE TABLE "
            "statements"
        )
    if isinstance(schemas, Path) and not schemas.is_dir():
        return model, read_schema_file(schemas, flavor)
    start = BinlogPosition(first.name, MAGIC_LENGTH)
    model.restore(change for change in _history(schemas) if change.position < start)
    return model, {}


def _history(out: OutputPlace) -> Iterable[SchemaChange]:
    with opening(out):
        log = CommitLog(out)
        last, oldest = log.latest_version(), log.oldest_version()
        if last < 0:
            raise ArchiveError(
                f"`schemas` is {out}, which has no commits: give an output that followed the same server"
            )
        entries = [*log.schema_state_at(oldest - 1).changes(), *log.schema_changes(oldest, last)]
    return (entry.change for entry in entries)
