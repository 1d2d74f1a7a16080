"""The network process: one source, server or files, into the outlet."""

from __future__ import annotations

from engine.child import Child, run_child
from engine.net.file_stream import follow_files
from engine.net.origins import FileSource, NetworkConfig
from engine.net.outlet import Outlet
from engine.net.server_stream import follow_server


def run_network(config: NetworkConfig) -> None:
    """The process's main function; ends when the sink has taken everything."""
    run_child("network", config.reports_endpoint, lambda child: _stream(child, config))


def _stream(child: Child, config: NetworkConfig) -> None:
    outlet = Outlet(
        child,
        config.batches_endpoint,
        config.acks_endpoint,
        config.window_bytes,
        slots=config.slots,
        decoders=config.decoders,
    )
    if isinstance(config.origin, FileSource):
        follow_files(child, outlet, config.origin, config.decode)
    else:
        follow_server(child, outlet, config.origin, config.decode)
    outlet.drain()
