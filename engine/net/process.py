"""The network process: one source, server or files, into the outlet."""

from __future__ import annotations

from dataclasses import dataclass

from engine.child import Child, run_child
from engine.net.file_stream import FileSource, follow_files
from engine.net.outlet import Outlet
from engine.net.server_stream import ServerSource, follow_server

WINDOW_BYTES = 64 << 20
"""Bytes of batches that may be on their way between network process and sink; one batch may always be."""


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """What the network process is started with."""

    origin: ServerSource | FileSource
    batches_endpoint: str
    acks_endpoint: str
    reports_endpoint: str
    window_bytes: int = WINDOW_BYTES


def run_network(config: NetworkConfig) -> None:
    """The process's main function; ends when the sink has taken everything."""
    run_child("network", config.reports_endpoint, lambda child: _stream(child, config))


def _stream(child: Child, config: NetworkConfig) -> None:
    outlet = Outlet(child, config.batches_endpoint, config.acks_endpoint, config.window_bytes)
    if isinstance(config.origin, FileSource):
        follow_files(child, outlet, config.origin)
    else:
        follow_server(child, outlet, config.origin)
    outlet.drain()
