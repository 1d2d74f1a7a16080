"""The output while the sink has it: locked, recovered and cleaned before, and left clean after a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.output.commit_log import CommitLog, OtherWriterError
from engine.output.files import OutputError, writing
from engine.output.folder import OutputState, clean_output, recover_output
from engine.output.lock import output_lock
from engine.output.storage import OutputPlace, be_patient, output_place
from engine.output.working_folder import clean_spool
from engine.pipeline.process_settings import SinkConfig
from engine.sink.publication import Publication, publication_of
from engine.sink.writer import Writer

LAST_SECONDS = 10.0
"""How long a process that is to end waits for an object store; the supervisor does not wait much longer."""


@dataclass(frozen=True, slots=True)
class LockedOutput:
    """What the sink writes with."""

    state: OutputState
    """From which `writer` goes on."""
    writer: Writer
    publication: Publication


@contextmanager
def locked_output(config: SinkConfig, on_finished: Callable[[], None]) -> Iterator[LockedOutput]:
    """Hold the lock of the output, with a writer whose uncommitted files are removed after a failure.

    `on_finished` as for `Writer`. Raises `OutputError` if the output is not as it was when the run was
    planned.
    """
    out = output_place(config.out)
    with output_lock(out):
        state = _prepared(out, config.expected_commit)
        publication = publication_of(out)
        writer = Writer(
            CommitLog(out),
            state,
            server_uuid=config.server_uuid,
            flavor=config.flavor,
            shard=config.shard,
            commit_interval=config.commit_interval,
            commit_bytes=config.commit_bytes,
            publication=publication,
            on_finished=on_finished,
        )
        try:
            yield LockedOutput(state, writer, publication)
        except BaseException as error:
            be_patient(seconds=LAST_SECONDS)
            writer.close()
            if isinstance(error, OtherWriterError):
                # What comes after the last commit belongs to that one now, except for files of this epoch.
                publication.withdraw()
            elif isinstance(out, Path):
                with suppress(EngineError):
                    clean_output(out, recover_output(out).commit)
            raise
        writer.close()


def _prepared(out: OutputPlace, expected_commit: int) -> OutputState:
    """The state of the output, which has nothing but its commits then, and these in segments."""
    state = recover_output(out)
    if state.commit != expected_commit and state.epoch:
        raise OtherWriterError(out)
    if state.commit != expected_commit:
        raise OutputError(
            f"the output folder {out} advanced from commit {expected_commit} to {state.commit} just now, "
            "because another binlog-engine was still writing there: start again"
        )
    clean_spool(out)
    clean_output(out, state.commit)
    with writing(out):
        CommitLog(out).consolidate()
    return state
