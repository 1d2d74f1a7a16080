"""What an object store's answers mean: try again, or a sentence for the user.

The text of an answer is never shown: it can contain parts of a request's signature. Its HTTP status and its
code, which are words of the store's own interface, are.
"""

from __future__ import annotations

import re

from engine.config.output_place import StoreUrl
from engine.output.files import OutputError

_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
"""409: two conditional requests for one name at the same time."""
_TRANSIENT_CODES = frozenset({"RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable"})
_MACHINE_CREDENTIALS = "169.254."
"""The address at which a machine of a cloud gets credentials; asked last, if the environment has none."""
ALLOWS_HTTP = {"s3": "AWS_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP"}
"""Scheme of a URL → the variable that permits an endpoint without TLS."""
_CREDENTIALS = "set the store's credentials in the environment, as docs/operations.md says"
_REASONS = {
    "NoSuchBucket": ("there is no bucket `{bucket}`", "create it, or correct the URL"),
    "ContainerNotFound": ("there is no container `{bucket}`", "create it, or correct the URL"),
    "SignatureDoesNotMatch": ("the store refuses the secret key", _CREDENTIALS),
    "InvalidAccessKeyId": ("the store does not know the access key", _CREDENTIALS),
    "XAdminUserNotFound": ("the store does not know the access key", _CREDENTIALS),
    "ExpiredToken": ("the credentials have expired", _CREDENTIALS),
    "RequestTimeTooSkewed": (
        "this machine's clock differs too much from the store's",
        "set the clock of this machine",
    ),
    "AccessDenied": (
        "these credentials may not do that",
        "permit reading, listing, writing and removing objects below the prefix",
    ),
}
"""Code of an answer → what is wrong, and what to do."""


class StoreError(OutputError):
    """An object store refuses a request, or does not answer; the message names the output."""


class StoreAwayError(StoreError):
    """The store does not answer, or asks to try again later."""

    retryable = True


def store_error(error: Exception, url: StoreUrl, doing: str) -> StoreError:
    """The error for users: `StoreAwayError` if the same request may succeed later. `doing`: what failed."""
    text = str(error)
    status = int(found[1]) if (found := _STATUS.search(text)) else None
    code = found[1] if (found := _CODE.search(text)) else ""
    if _MACHINE_CREDENTIALS in text or "MissingAccount" in text or "credential" in text.lower():
        return StoreError(f"{doing} {url} failed: no credentials were found; {_CREDENTIALS}")
    if "BadScheme" in text:
        return StoreError(
            f"{doing} {url} failed: its endpoint is an http:// address; give an https:// one, or set "
            f"{ALLOWS_HTTP[url.scheme]}=true in the environment"
        )
    if status is None:
        if "HTTP error" in text or isinstance(error, TimeoutError):
            return StoreAwayError(f"{doing} {url} failed: the store does not answer")
        return StoreError(f"{doing} {url} failed: {text.partition(chr(10))[0][:200]}")
    if status >= 500 or status in _TRANSIENT_STATUS or code in _TRANSIENT_CODES:
        return StoreAwayError(f"{doing} {url} failed: the store asks to try again ({code or status})")
    fallback = (f"the store answered {status} {code}".rstrip(), "check the URL and the credentials")
    if status in (401, 403):
        fallback = _REASONS["AccessDenied"]
    reason, remedy = _REASONS.get(code, fallback)
    return StoreError(f"{doing} {url} failed: {reason.format(bucket=url.bucket)}; {remedy}")
