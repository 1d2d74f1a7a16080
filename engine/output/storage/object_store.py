"""An output in an object store: S3, Google Cloud Storage, Azure, and what speaks the protocol of one of them.

Every file is one PUT: it is there as a whole or not at all, no upload of several parts can be left over, and
a PUT that names must not exist for (`If-None-Match: *`) decides between two writers. Requests that fail for a
time are made again (`waiting`). The store's listings and reads must be strongly consistent, as those of the
three are.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import AzureStore, GCSStore, S3Store

from engine.config.output_place import StoreUrl
from engine.output.data_file_names import Part, file_of, part_of
from engine.output.storage.aws_files import aws_file_options
from engine.output.storage.interface import Storage
from engine.output.storage.store_errors import ALLOWS_HTTP, StoreAwayError, store_error
from engine.output.storage.waiting import Waiting

if TYPE_CHECKING:
    import pyarrow as pa

_Result = TypeVar("_Result")
_Item = TypeVar("_Item")

_STORES: dict[str, Callable[..., Any]] = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}
_CLIENT = {"connect_timeout": "5s", "timeout": "300s"}
"""`timeout` is that of a whole request, in which a data file of 64 MB has to be sent."""
_STALL = {"read_timeout": "10s"}
"""When to give up a connection on which nothing comes. It counts from the beginning of a request, so a large
one, whose content takes long to send, is without it."""
_LARGE_BYTES = 1 << 20
_RETRIES = {"max_retries": 0, "retry_timeout": timedelta(seconds=1)}
"""`Waiting` does that, with warnings."""
_AT_ONCE = 16
"""Requests at a time."""
_LISTED_AT_ONCE = 1000
_NO_KEY = ("NoSuchKey", "BlobNotFound", "non-2xx status code: 404 Not Found: \n")
"""In the answer for a name that does not exist; others, such as a bucket's, get that status, too. A HEAD has
no content that would tell them apart."""
_NO_RANGE = "non-2xx status code: 416"
"""In the answer for a range that begins after the end."""


class ObjectStore(Storage):
    """The objects below the URL `place`; credentials come from the environment, or from files.

    Methods may be called from several threads.
    """

    has_lock = False

    def __init__(self, place: StoreUrl) -> None:
        self.place: StoreUrl = place
        # Given options take the place of those in the environment, which is where this one belongs.
        allows_http = os.environ.get(ALLOWS_HTTP[place.scheme], "").lower() in ("1", "true")
        client = {**_CLIENT, "allow_http": allows_http}
        config = aws_file_options(os.environ) if place.scheme == "s3" else None
        try:
            self._store, self._for_large = (
                _STORES[place.scheme](
                    place.bucket,
                    prefix=place.prefix or None,
                    config=config,
                    client_options=options,
                    retry_config=_RETRIES,
                )
                for options in ({**client, **_STALL}, client)
            )
        except (BaseError, ValueError) as error:
            raise store_error(error, place, "opening") from None
        self._requests = ThreadPoolExecutor(_AT_ONCE, "store")

    def __reduce__(self) -> tuple[type[Self], tuple[StoreUrl]]:
        """Spark sends readers to other processes, whose own environment has the credentials."""
        return type(self), (self.place,)

    def _ask(self, doing: str, request: Callable[[], _Result]) -> _Result:
        """The answer to a request, which is made again for as long as this process waits.

        Raises `FileNotFoundError`, `FileExistsError` and `StoreError`.
        """
        waiting = Waiting(lambda: self.patience)
        while True:
            try:
                return request()
            except (AlreadyExistsError, PreconditionError):
                raise FileExistsError(str(self.place)) from None
            except (BaseError, OSError, ValueError) as error:
                if isinstance(error, FileNotFoundError) and any(text in str(error) for text in _NO_KEY):
                    raise FileNotFoundError(str(self.place)) from None
                problem = store_error(error, self.place, doing)
            if not (isinstance(problem, StoreAwayError) and waiting.again(str(problem))):
                raise problem

    def side_by_side(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        return self._requests.map(function, items)

    def read(self, name: str) -> bytes:
        return bytes(self._content(name))

    def _content(self, name: str) -> Any:
        """The content as a buffer."""
        part = part_of(name)
        if part is None:
            return self._ask("reading", lambda: obstore.get(self._store, name).bytes())
        return self._ask("reading", lambda: self._range(part))

    def _range(self, part: Part) -> Any:
        try:
            return obstore.get_range(self._store, part.file, start=part.offset, length=part.size)
        except BaseError as error:
            if _NO_RANGE in str(error):
                return b""
            raise

    def open(self, name: str) -> pa.NativeFile:
        import pyarrow as pa  # Here, because the supervisor reads commits too and has no need of Arrow.

        return pa.BufferReader(pa.py_buffer(self._content(name)))

    def exists(self, name: str) -> bool:
        try:
            self.size(name)
        except FileNotFoundError:
            return False
        return True

    def size(self, name: str) -> int:
        part = part_of(name)
        size = int(self._ask("reading", lambda: obstore.head(self._store, file_of(name)))["size"])
        return size if part is None else part.size_in(size)

    def names(self, folder: str, after: str = "") -> list[str]:
        # Azure's store begins a list in its own way, and may begin earlier.
        return sorted(name for name in self._listed(folder, after) if name > after)

    def sizes(self, folder: str) -> dict[str, int]:
        return {name: int(found["size"]) for name, found in self._listed(folder).items()}

    def times(self, folder: str) -> dict[str, float]:
        return {name: found["last_modified"].timestamp() for name, found in self._listed(folder).items()}

    def _listed(self, folder: str, after: str = "") -> dict[str, Any]:
        """What the store says about each object in the folder, by its name there."""
        offset = f"{folder}/{after}" if after else None

        def request() -> dict[str, Any]:
            pages = obstore.list(self._store, folder, offset=offset, chunk_size=_LISTED_AT_ONCE)
            start = len(folder) + 1
            return {entry["path"][start:]: entry for page in pages for entry in page}

        return self._ask("listing", request)

    def top_names(self) -> list[str]:
        def request() -> list[str]:
            found = obstore.list_with_delimiter(self._store)
            return [*found["common_prefixes"], *(entry["path"] for entry in found["objects"])]

        return self._ask("listing", request)

    def create(self, name: str, content: bytes) -> None:
        self._ask("writing", lambda: self._put(name, content, "create"))

    def create_with(self, name: str, write: Callable[[Any], None]) -> pa.NativeFile:
        import pyarrow as pa

        written = io.BytesIO()
        write(written)
        content = written.getvalue()
        self.create(name, content)
        return pa.BufferReader(content)

    def exchange(self, name: str, old: bytes, new: bytes) -> None:
        while True:
            found = self._ask("reading", lambda: obstore.get(self._store, name))
            content = bytes(self._ask("reading", found.bytes))
            # If it is the new content, the answer to an earlier attempt was lost.
            if content == new:
                return
            if content != old:
                raise FileExistsError(str(self.place / name))
            unchanged = {key: tag for key in ("e_tag", "version") if (tag := found.meta.get(key))}
            with suppress(FileExistsError):
                self._ask("writing", lambda unchanged=unchanged: self._put(name, new, unchanged))  # type: ignore[misc]
                return

    def replace(self, name: str, content: bytes) -> None:
        self._ask("writing", lambda: self._put(name, content, "overwrite"))

    def note(self, name: str, content: bytes) -> None:
        self.replace(name, content)

    def _put(self, name: str, content: bytes, mode: Any) -> None:
        store = self._for_large if len(content) >= _LARGE_BYTES else self._store
        obstore.put(store, name, content, mode=mode, use_multipart=False)

    def remove(self, names: Iterable[str]) -> None:
        removed = list(names)
        for first in range(0, len(removed), _LISTED_AT_ONCE):
            some = removed[first : first + _LISTED_AT_ONCE]
            self._ask("removing from", lambda some=some: self._remove(some))  # type: ignore[misc]

    def _remove(self, names: list[str]) -> None:
        try:
            obstore.delete(self._store, names)
        except FileNotFoundError:
            # S3 does not mind; with the other stores, those after the missing one may still be there.
            list(self.side_by_side(self._remove_one, names))

    def _remove_one(self, name: str) -> None:
        with suppress(FileNotFoundError):
            obstore.delete(self._store, name)

    def move(self, name: str, new_name: str) -> None:
        self._ask("writing", lambda: obstore.copy(self._store, name, new_name))
        self.remove([name])

    def settle(self, folder: str) -> None:
        pass

    def settle_folders(self) -> None:
        pass

    def unfinished(self, name: str) -> bytes:
        raise FileNotFoundError(name)

    def finish(self, name: str) -> None:
        raise FileNotFoundError(name)

    def remove_leftovers(self, folder: str) -> None:
        pass
