"""The `compact` command: merges the small files of old commits into large ones."""

from __future__ import annotations

from tqdm import tqdm

from engine.commands.vacuum import require_output
from engine.config.amounts import age_seconds
from engine.config.settings import CompactSettings
from engine.output.compaction import compact


def compact_command(settings: CompactSettings) -> int:
    """Compact, and print what was done; returns the exit code. Raises `EngineError`."""
    grace_seconds = age_seconds(settings.grace)
    require_output(settings.out)
    with tqdm(unit=" groups of commits", disable=None, leave=False) as bar:
        done = compact(settings.out, grace_seconds=grace_seconds, report=lambda _: bar.update())
    print(
        f"{done.files_before:,} files became {done.files_after:,} of {done.bytes_after:,} bytes; removed "
        f"{done.removed:,} files that were replaced at least {settings.grace} ago"
    )
    return 0
