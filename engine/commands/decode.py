"""The `decode` command: decodes local binlog files into an output folder.

It finds the file and position at which the output ends, and the supervisor does the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from engine.binlog.files import file_order, first_format, open_binlog
from engine.binlog.position import SourcePosition
from engine.commands.corrupt_events import CorruptEventSkips
from engine.commands.pipeline_run import plan_run, show_run
from engine.commands.run_log import RunLog
from engine.config.settings import DecodeSettings
from engine.errors import EngineError
from engine.output.folder import claim_output, settled_output
from engine.output.storage import be_patient
from engine.pipeline.observer import Observer
from engine.pipeline.outcome import Outcome
from engine.pipeline.process_settings import FileSource
from engine.pipeline.supervisor import Supervisor


def decode_command(settings: DecodeSettings, log: RunLog | None = None) -> int:
    """Decode the files and show how that went; returns the exit code. Raises `EngineError`."""
    return show_run(lambda observer: decode_files(settings, observer), settings, log)


def decode_files(settings: DecodeSettings, observer: Observer) -> Outcome:
    """Decode the files from the end of the output on. Raises `EngineError`."""
    files = settings.files
    with open_binlog(files[0]) as file:
        flavor = first_format(file, files[0].name).flavor
    for path in files[1:]:
        open_binlog(path).close()
    skips = CorruptEventSkips(settings.pipeline.on_corrupt == "skip", observer)
    before = Outcome()
    while True:
        state = settled_output(settings.pipeline.out)
        be_patient(settings.pipeline.out, partial(observer.warn, "store_away"))
        state = claim_output(settings.pipeline.out, state)
        origin = replace(_remaining(files, state.position), skips=skips.events)
        plan = plan_run(settings.pipeline, origin, state, "", flavor)
        outcome = Supervisor(plan, observer).run()
        before = outcome.add(before)
        if not skips.take(outcome):
            return outcome


def _remaining(files: Sequence[Path], position: SourcePosition | None) -> FileSource:
    """The files from the position on at which the output ends."""
    if position is None:
        return FileSource(tuple(files))
    if position.server_uuid:
        raise EngineError("the output folder follows a server: decode files into a folder of their own")
    names = [path.name for path in files]
    if names.count(position.file) > 1:
        raise EngineError(
            f"the output folder continues at {position.file} position {position.position}, but several of "
            "the files have that name: give only the one with which it ends, and later ones"
        )
    if position.file in names:
        first = names.index(position.file)
        return FileSource(tuple(files[first:]), position.position, position.gtid_set)
    if min(map(file_order, names)) < file_order(position.file):
        raise EngineError(
            f"the output folder continues at {position.file} position {position.position}: give that file, "
            "later ones, or a new folder"
        )
    return FileSource(tuple(files), gtid_set=position.gtid_set)
