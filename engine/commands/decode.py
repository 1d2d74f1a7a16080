"""The `decode` command: decodes local binlog files into an output folder.

It finds the file and position at which the output ends, and the supervisor does the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine.binlog.event_types import HEADER_LENGTH
from engine.binlog.files import MAGIC_LENGTH, file_order, open_binlog
from engine.binlog.format_description import FormatDescription
from engine.binlog.position import SourcePosition
from engine.commands.corrupt_events import CorruptEventSkips
from engine.commands.pipeline_run import plan_run, show_run
from engine.commands.run_progress import Display
from engine.config.settings import DecodeSettings
from engine.errors import BinlogError, EngineError, EventError
from engine.output.folder import settled_output
from engine.pipeline.process_settings import FileSource
from engine.pipeline.supervisor import Outcome, Supervisor


def decode_command(settings: DecodeSettings) -> int:
    """Decode the files and show how that went; returns the exit code. Raises `EngineError`."""
    return show_run(
        lambda display: _decode_files(settings, display), report=settings.report, verbose=settings.verbose
    )


def _decode_files(settings: DecodeSettings, display: Display) -> Outcome:
    """Decode the files from the end of the output on."""
    files = settings.files
    flavor = _flavor(files[0])
    for path in files[1:]:
        open_binlog(path).close()
    skips = CorruptEventSkips(settings.pipeline.on_corrupt == "skip", display)
    before = Outcome()
    while True:
        state = settled_output(settings.pipeline.out)
        origin = replace(_remaining(files, state.position), skips=skips.events)
        plan = plan_run(settings.pipeline, origin, state, "", flavor)
        outcome = Supervisor(plan, display.progress).run()
        before = outcome.add(before)
        if not skips.take(outcome):
            return outcome


def _flavor(path: Path) -> str:
    with open_binlog(path) as file:
        header = file.read(HEADER_LENGTH)
        event = header + file.read(max(0, int.from_bytes(header[9:13], "little") - HEADER_LENGTH))
    try:
        return FormatDescription.parse(event).flavor
    except EventError as error:
        raise BinlogError(path.name, MAGIC_LENGTH, error.reason) from None


def _remaining(files: Sequence[Path], position: SourcePosition | None) -> FileSource:
    """The files from the position on at which the output ends."""
    if position is None:
        return FileSource(tuple(files))
    if position.server_uuid:
        raise EngineError("the output folder follows a server: decode files into a folder of their own")
    names = [path.name for path in files]
    if position.file in names:
        first = names.index(position.file)
        return FileSource(tuple(files[first:]), position.position, position.gtid_set)
    if min(map(file_order, names)) < file_order(position.file):
        raise EngineError(
            f"the output folder continues at {position.file} position {position.position}: give that file, "
            "later ones, or a new folder"
        )
    return FileSource(tuple(files), gtid_set=position.gtid_set)
