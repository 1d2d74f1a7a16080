"""Where an output is stored: a local folder or an object store, with one interface for both.

Everything that writers and readers share goes through a `Storage`, by names that are relative to the output.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from engine.config.output_place import OutputPlace, StoreUrl, output_place
from engine.output.storage.interface import Storage
from engine.output.storage.local_folder import LocalFolder
from engine.output.storage.waiting import Patience, set_process_patience

__all__ = ["OutputPlace", "Storage", "StoreUrl", "be_patient", "output_place", "storage_of"]


def storage_of(out: str | OutputPlace) -> Storage:
    """The storage of an output; nothing is opened before it is used. Raises `EngineError` for a bad URL."""
    place = output_place(out)
    return _store_of(place) if isinstance(place, StoreUrl) else LocalFolder(place)


def be_patient(
    out: OutputPlace | None = None, warn: Callable[[str], None] = lambda _: None, seconds: float = math.inf
) -> None:
    """From now on, wait for an object store that does not answer: for that of `out`, or for all others.

    `warn` is given a sentence from time to time, in any thread. It concerns this process only.
    """
    patience = Patience(seconds, warn)
    if out is None:
        set_process_patience(patience)
    else:
        storage_of(out).patience = patience


@cache
def _store_of(url: StoreUrl) -> Storage:
    """One per URL and process, since it keeps connections open."""
    # Here, because obstore is loaded only where it is used.
    from engine.output.storage.object_store import ObjectStore

    return ObjectStore(url)
