"""A mirror as a registered consumer of its output: commits stay until every target records that it has them.

A target of a table that does not change records only now and then that it has all rows, and one that is set
aside does not go on. The slowest of them counts, by what it last recorded: that holds after a kill, too.
"""

from __future__ import annotations

from engine.errors import EngineError
from engine.lakehouse.target import TargetState
from engine.output.commit_log import CommitLog
from engine.output.consumers import check_name, consumers, note_progress
from engine.schema.changes import TableName
from engine.spark.log_view import LogView


class Registration:
    """The consumer of one mirror."""

    def __init__(self, log: CommitLog, name: str) -> None:
        """Raises `EngineError` for a name that consumers cannot have."""
        try:
            self._name = check_name(name)
        except ValueError as error:
            raise EngineError(f"the mirror's consumer cannot be called `{name}`: give {error}") from None
        self._log = log
        self._commit: int | None = None
        """The commit that was noted last; None before the first time."""
        self._recorded: dict[TableName, int] = {}
        """The `_seq` that each target records."""
        self._lacking: set[TableName] = set()
        """Tables whose targets may lack rows from before the last round's commit."""

    def begin(self) -> None:
        """Register before the first round, so that no commit is removed during it. Raises `EngineError`."""
        if self._commit is not None:
            return
        known = {consumer.name: consumer.commit for consumer in consumers(self._log.out)}
        self._commit = known.get(self._name, self._log.oldest_version() - 1)
        if self._name not in known:
            note_progress(self._log.out, self._name, self._commit)

    def has_all(self, table: TableName, state: TargetState | None) -> None:
        """The table's target has all rows; without a state there is no target, and no such table any more."""
        self._lacking.discard(table)
        if state is None:
            self._recorded.pop(table, None)
        else:
            self._recorded[table] = state.seq

    def lacks(self, table: TableName) -> None:
        """The table is set aside."""
        self._lacking.add(table)

    def note(self, view: LogView) -> None:
        """Note how far all targets are after a round up to the view's last commit. Raises `EngineError`."""
        assert self._commit is not None
        # Of a target that was set aside at once it is not known how far it is: what was noted before holds.
        if not self._lacking - self._recorded.keys():
            self._commit = self._reached(view)
        note_progress(self._log.out, self._name, self._commit)

    def _reached(self, view: LogView) -> int:
        """The last commit that every target has."""
        commits = [view.last]
        complete = [seq for table, seq in self._recorded.items() if table not in self._lacking]
        if complete:
            commits.append(view.commit_after(min(complete)) - 1)
        if self._lacking:
            # A commit without rows may have a statement that the target has not taken over.
            slowest = min(self._recorded[table] for table in self._lacking)
            commits.append(view.commit_after(slowest - 1) - 1)
        return min(commits)
