"""Real MySQL and MariaDB servers for the tests and the perf harness, an object store, an HDFS, and binlogs
that no server writes any more.

`get_server("mysql-9.7")` gives a server in a folder of its own; `start`, `stop`, or use it as a context
manager. Everything is downloaded once, into the user's cache folder (`python -m tests.servers` does so ahead
of time).
"""

from __future__ import annotations

from collections.abc import Mapping

from .cache import UnavailableError
from .hdfs import HdfsServer
from .historic import historic_binlogs
from .installations import FLAVORS_BY_NAME, NO_ROW_METADATA, TOOLS_ONLY, installation
from .object_store import ObjectServer
from .server import GTIDS, Server
from .template import template

__all__ = [
    "EVERY_FLAVOR",
    "FLAVORS",
    "GTIDS",
    "NO_ROW_METADATA",
    "HdfsServer",
    "ObjectServer",
    "Server",
    "UnavailableError",
    "get_server",
    "historic_binlogs",
]

EVERY_FLAVOR = tuple(FLAVORS_BY_NAME)
FLAVORS = tuple(name for name in EVERY_FLAVOR if name not in TOOLS_ONLY)
"""Those that tests run on."""


def get_server(flavor: str, options: Mapping[str, str | None] | None = None) -> Server:
    """A server of one of EVERY_FLAVOR, not started yet, with `options` of the server's own over the defaults.

    Raises UnavailableError with the reason when the flavor cannot be had on this machine.
    """
    installed = installation(flavor)
    return Server(flavor, installed, template(flavor, installed), options or {})
