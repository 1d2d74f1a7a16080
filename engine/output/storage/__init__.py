"""Where an output is stored, behind one interface: a local folder, or an object store.

Everything that writers and readers share goes through a `Storage`, by names that are relative to the output.
"""

from __future__ import annotations

from functools import lru_cache

from engine.config.output_place import OutputPlace, StoreUrl, output_place
from engine.output.storage.interface import Storage
from engine.output.storage.local_folder import LocalFolder
from engine.output.storage.waiting import wait_for_store

__all__ = ["OutputPlace", "Storage", "StoreUrl", "output_place", "storage_of", "wait_for_store"]


def storage_of(out: str | OutputPlace) -> Storage:
    """The storage of an output; nothing is opened before it is used. Raises `EngineError` for a bad URL."""
    place = output_place(out)
    return _store_of(place) if isinstance(place, StoreUrl) else LocalFolder(place)


@lru_cache(maxsize=16)
def _store_of(url: StoreUrl) -> Storage:
    """One per URL and process, since it keeps connections open."""
    # Here, because obstore is loaded only where it is used.
    from engine.output.storage.object_store import ObjectStore

    return ObjectStore(url)
