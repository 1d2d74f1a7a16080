"""Requests for snapshots as small files in the output folder, where a running engine or the next one finds
them.

A request stays until a commit contains it, so that it is carried out once. Canceling removes requests that no
commit contains yet, and asks the engine to end the others.
"""

from __future__ import annotations

import glob
import time
import uuid

from engine.dataclass import dataclass
from engine.output.files import OutputError, writing
from engine.output.snapshot_progress import SnapshotRequest
from engine.output.storage import OutputPlace, storage_of
from engine.records import Misfit, from_json, to_json
from engine.schema.changes import TableName

REQUESTS_FOLDER = "_requests"
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Cancellation:
    """The end of snapshots that are not done."""

    id: str
    tables: tuple[str, ...]
    """Patterns of the tables whose snapshots end."""


@dataclass(frozen=True, slots=True)
class _RequestFile:
    snapshot: SnapshotRequest | None = None
    cancellation: Cancellation | None = None


def request_snapshot(
    out: OutputPlace, tables: tuple[str, ...], excluded: tuple[str, ...] = (), where: str | None = None
) -> SnapshotRequest:
    """Leave a request in the output, which need not exist yet. Raises `OutputError`."""
    request = SnapshotRequest(_new_id(), time.time_ns() // 1000, tables, excluded, where)
    _write(out, request.id, _RequestFile(snapshot=request))
    return request


def pattern_of(name: TableName) -> str:
    """The pattern that only this table matches."""
    return f"{glob.escape(name.database)}.{glob.escape(name.table)}"


def cancel_snapshots(out: OutputPlace, tables: tuple[str, ...]) -> None:
    """Ask for the end of the snapshots of these tables (patterns). Raises `OutputError`."""
    cancellation = Cancellation(_new_id(), tables)
    _write(out, cancellation.id, _RequestFile(cancellation=cancellation))


def waiting_requests(out: OutputPlace) -> list[SnapshotRequest | Cancellation]:
    """The requests in the folder, oldest first. Raises `OutputError` for a damaged one."""
    found: list[SnapshotRequest | Cancellation] = []
    storage = storage_of(out)
    for name in _names(out):
        try:
            request = from_json(_RequestFile, storage.read(name))
        except FileNotFoundError:
            continue
        except Misfit as error:
            raise OutputError(
                f"the request {out / name} is damaged ({error}): remove it and make it again"
            ) from None
        content = request.snapshot or request.cancellation
        if content is not None:
            found.append(content)
    return found


def has_requests(out: OutputPlace) -> bool:
    """Whether there are any."""
    return bool(_names(out))


def remove_request(out: OutputPlace, request_id: str) -> None:
    """Remove a request that a commit contains. Raises `OutputError`."""
    name = _name(request_id)
    with writing(out / name):
        storage_of(out).remove([name])


def _new_id() -> str:
    """Sorts by time."""
    return f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}"


def _name(request_id: str) -> str:
    return f"{REQUESTS_FOLDER}/{request_id}{_SUFFIX}"


def _names(out: OutputPlace) -> list[str]:
    names = storage_of(out).names(REQUESTS_FOLDER)
    return [f"{REQUESTS_FOLDER}/{name}" for name in names if name.endswith(_SUFFIX)]


def _write(out: OutputPlace, request_id: str, content: _RequestFile) -> None:
    name = _name(request_id)
    with writing(out / name):
        storage = storage_of(out)
        storage.create(name, to_json(content, {}))
        storage.settle(REQUESTS_FOLDER)
