"""Where an output is: a folder of this machine, or a prefix of a bucket in an object store.

A user gives either as one text. A URL is never a `Path`, which would join the two slashes of `s3://`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Self, TypeAlias
from urllib.parse import urlsplit

from engine.dataclass import dataclass
from engine.errors import EngineError

SCHEMES = {"s3": "Amazon S3", "gs": "Google Cloud Storage", "az": "Azure Blob Storage"}
"""Scheme of a URL → the kind of store."""
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:/")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A prefix of a bucket, such as `s3://lake/shop/changes`."""

    scheme: str
    """A key of `SCHEMES`."""
    bucket: str
    """For Azure the container."""
    prefix: str
    """Of all names, without slashes at its ends; empty for the whole bucket."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The place that a URL names. Raises `EngineError`, whose message has no secret of the URL."""
        try:
            url = urlsplit(text)
        except ValueError:
            raise EngineError("the URL of the output is not valid: give s3://BUCKET/PREFIX") from None
        if "@" in url.netloc:
            raise EngineError(
                f"the {url.scheme} URL of the output contains credentials: give them in the environment, as "
                "docs/operations.md says, and the URL without them"
            )
        if url.scheme not in SCHEMES:
            raise EngineError(
                f"an output cannot be at {url.scheme}://: give a folder, or a URL that begins with "
                + ", ".join(f"{scheme}://" for scheme in SCHEMES)
            )
        if url.query or url.fragment:
            raise EngineError(
                f"the {url.scheme} URL of the output has a part after `?` or `#`: give {url.scheme}://BUCKET/PREFIX"
            )
        prefix = url.path.strip("/")
        parts = prefix.split("/") if prefix else []
        if not _BUCKET.fullmatch(url.netloc) or any(part in ("", ".", "..") for part in parts):
            raise EngineError(f"{text} is not a place for an output: give {url.scheme}://BUCKET/PREFIX")
        return cls(url.scheme, url.netloc, prefix)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.prefix}".rstrip("/")

    def __truediv__(self, name: str) -> Self:
        """The URL of a name in the output, as a message shows it."""
        return replace(self, prefix=f"{self.prefix}/{name}".strip("/"))

    @property
    def name(self) -> str:
        """The last part of the prefix; folders have a property of this name, too."""
        return self.prefix.rpartition("/")[2]

    @property
    def parent(self) -> Self:
        """The URL without its last part."""
        return replace(self, prefix=self.prefix.rpartition("/")[0])

    def absolute(self) -> Self:
        """The same on every machine; folders have a method of this name, too."""
        return self

    def resolve(self) -> Self:
        """As `absolute`."""
        return self


OutputPlace: TypeAlias = Path | StoreUrl


def output_place(given: str | OutputPlace) -> OutputPlace:
    """The place that a user names: a URL with one of the known schemes, or else a folder.

    Raises `EngineError` for a URL that is not one of an output.
    """
    if isinstance(given, str):
        return StoreUrl.parse(given) if _URL.match(given) else Path(given)
    return given
