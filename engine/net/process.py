"""The network process: sends the events of a server or of binlog files to the decoders in batches."""

from __future__ import annotations

from engine.net.batch_sender import BatchSender
from engine.net.file_stream import follow_files
from engine.net.server_stream import follow_server
from engine.pipeline.child import Child, run_child
from engine.pipeline.process_settings import FileSource, NetworkConfig


def run_network(config: NetworkConfig) -> None:
    """The process's main function; returns when the sink has acknowledged every batch."""
    run_child("network", config.reports_endpoint, lambda child: _stream(child, config))


def _stream(child: Child, config: NetworkConfig) -> None:
    sender = BatchSender(
        child,
        config.batches_endpoint,
        config.acks_endpoint,
        slots=config.slots,
        slot_count=config.slot_count,
        decoders=config.decoders,
    )
    if isinstance(config.origin, FileSource):
        follow_files(child, sender, config.origin, config.decode, config.schema, config.flavor)
    else:
        follow_server(child, sender, config.origin, config.decode, config.schema)
    sender.drain()
