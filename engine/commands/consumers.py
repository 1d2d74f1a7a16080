"""The `consumers` command: shows the consumers of an output and how far each has read, or removes one."""

from __future__ import annotations

import time

from engine.commands.vacuum import require_output
from engine.config.settings import ConsumersSettings
from engine.output.commit_log import CommitLog
from engine.output.commit_times import shown_time
from engine.output.consumers import consumers, remove_consumer


def consumers_command(settings: ConsumersSettings) -> int:
    """Print the consumers, or remove one; returns the exit code. Raises `EngineError`."""
    out = settings.out
    require_output(out)
    if settings.remove is not None:
        remove_consumer(out, settings.remove)
        print(f"removed the consumer {settings.remove}: commits are not kept for it any more")
        return 0
    latest = CommitLog(out).latest_version()
    found = consumers(out)
    for consumer in found:
        hours = (time.time() - consumer.time_us / 1_000_000) / 3600
        print(
            f"{consumer.name}: commit {consumer.commit}, {latest - consumer.commit:,} commits behind, "
            f"{shown_time(consumer.time_us)} ({hours:,.1f} hours ago)"
        )
    if not found:
        print("no consumer is registered: `vacuum` removes commits whether they were read or not")
    return 0
