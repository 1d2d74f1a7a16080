"""Turns what the supervisor says of a run into happenings: its start, its processes, its commits, its end."""

from __future__ import annotations

from engine.pipeline.observer import Happening, Observer
from engine.pipeline.outcome import Outcome
from engine.pipeline.plan import RunPlan
from engine.pipeline.process_settings import FileSource
from engine.pipeline.reports import (
    DumpStarted,
    MembersHidden,
    Report,
    SinkProgress,
    SinkReady,
    SnapshotProgress,
    SurvivorsHidden,
)


class Narrator(Observer):
    """Says to `listener` what happens in the runs of a command."""

    def __init__(self, listener: Observer) -> None:
        self._listener = listener
        self._attempt = 0
        self._commit = -1
        self._snapshot_finished = False
        self._empty_requests = 0
        """Of this run, so far."""
        self._warned_of: set[str] = set()
        """Sentences that are said once: about snapshots that wait, and members that are not certain."""

    def run_started(self, plan: RunPlan) -> None:
        self._attempt += 1
        self._commit = plan.expected_commit
        self._snapshot_finished = False
        self._empty_requests = 0
        origin = plan.origin
        if isinstance(origin, FileSource):
            source, place = f"{len(origin.files)} files", str(origin.files[0])
        else:
            source = origin.address.unix_socket or f"{origin.address.host}:{origin.address.port}"
            place = "by GTID" if origin.by_gtid else f"{origin.file or 'the first file'}:{origin.position}"
        self._listener.inform(
            "run_started",
            f"reading {source} from {place} into {plan.out} after commit {plan.expected_commit}",
            attempt=self._attempt,
            source=source,
            start=place,
            out=str(plan.out),
            commit=plan.expected_commit,
            decoders=plan.decoders,
        )

    def process_started(self, name: str, pid: int) -> None:
        self._debug("process_started", f"the {name} process runs as {pid}", process=name, pid=pid)

    def reported(self, report: Report) -> None:
        if isinstance(report.body, SnapshotProgress):
            self._warn_of_empty_requests(report.body)
            self._warn_of_waits(report.body)
        match report.body:
            case SinkReady(commit=commit):
                self._debug("sink_ready", f"the sink continues after commit {commit}", commit=commit)
            case DumpStarted():
                self._listener.inform("dump_started", "the server was asked for its binlog")
            case SurvivorsHidden():
                self._listener.warn(
                    "lost_rows_stay",
                    "the server was started while XA transactions were prepared, and does not list for this "
                    "user which it still has: the rows of those that it has lost stay in the output: grant "
                    "XA_RECOVER_ADMIN on *.*, and binlog-engine check --out will name them",
                )
            case MembersHidden(table=table, column=column):
                self._warn_once(
                    "members_hidden",
                    f"the server shows `?` in members of {table}.{column}, which may stand for a character "
                    "that its catalog cannot show, such as an emoji: rows that it logs without "
                    "binlog_row_metadata=FULL may have the `?` instead",
                    table=table,
                    column=column,
                )
            case SinkProgress(commit=commit) as progress if commit > self._commit:
                self._commit = commit
                totals = progress.totals
                self._debug(
                    "committed",
                    f"commit {commit} is on disk",
                    commit=commit,
                    rows=totals.rows,
                    bytes=totals.bytes,
                )
            case SnapshotProgress(finished=True) as progress if not self._snapshot_finished:
                self._snapshot_finished = True
                self._listener.inform(
                    "snapshot_ended",
                    f"{progress.rows} rows of {progress.done} tables read, {progress.failed} set aside",
                    tables=progress.done,
                    failed=progress.failed,
                    rows=progress.rows,
                )
            case SnapshotProgress(finished=False):
                self._snapshot_finished = False

    def run_ended(self, outcome: Outcome) -> None:
        how = "was stopped" if outcome.stopped else "failed" if outcome.error else "ended"
        self._listener.inform("run_ended", f"run {self._attempt} {how}", attempt=self._attempt, how=how)

    def _warn_of_empty_requests(self, progress: SnapshotProgress) -> None:
        for patterns in progress.empty_requests[self._empty_requests :]:
            self._listener.warn(
                "snapshot_without_tables",
                f"a snapshot of {patterns} was asked for, but this user sees none of its tables on the "
                "server: check the names, and the privilege SELECT",
                patterns=patterns,
            )
        self._empty_requests = len(progress.empty_requests)

    def _warn_of_waits(self, progress: SnapshotProgress) -> None:
        xid = progress.waits_for_prepared
        if xid is not None:
            self._warn_once(
                "snapshot_waits",
                f"the snapshot waits for the end of the XA transaction {xid}, which XA RECOVER lists as "
                "prepared: commit it or roll it back",
                xid=xid,
            )
        for table in progress.waits_for_tables:
            self._warn_once(
                "snapshot_waits_for_table",
                f"the snapshot waits for {table}, which others have locked or use in transactions that do "
                "not end: see SHOW PROCESSLIST, information_schema.INNODB_TRX and XA RECOVER",
                table=table,
            )
        if progress.hides_prepared:
            self._warn_once(
                "prepared_not_known",
                "the server has had prepared XA transactions, whose changes a snapshot may lack, and does "
                "not list them for this user: grant XA_RECOVER_ADMIN on *.* and request the snapshot again",
            )

    def _warn_once(self, name: str, sentence: str, **values: str) -> None:
        if sentence not in self._warned_of:
            self._warned_of.add(sentence)
            self._listener.warn(name, sentence, **values)

    def _debug(self, name: str, message: str, **values: object) -> None:
        self._listener.happened(Happening("debug", name, message, values))
