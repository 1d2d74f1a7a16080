"""One trial: a server under load, an engine under faults, and a reader that checks all the while.

The output begins with a snapshot, and others are requested all the time. At the end every table of the replay
is compared with a SELECT. A trial raises what it finds, by name.
"""

from __future__ import annotations

import math
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from engine.output.snapshot_requests import request_snapshot
from engine.output.verification import verify
from tests.chaos.failing_calls import FailingCalls
from tests.chaos.faults import FAILING_CALLS, FAULTS, Scene
from tests.chaos.follower import Follower
from tests.chaos.snapshots import SETTINGS, Requester, patterns
from tests.chaos.violation import Violation
from tests.chaos.workload import DATABASE, TABLES, Client, at_rest, create_tables
from tests.servers import Server
from tests.support.engine_run import COMMAND, EngineRun, command_line, end_of_binlog, wait_until
from tests.support.proxy import NONE, Proxy
from tests.support.snapshot_runs import snapshot_state, snapshots_are_over
from tests.support.xa_transactions import roll_back_prepared

SAFE: dict[str, str | None] = {"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1"}
"""What a server needs to have after a crash what its binlog has."""
CLIENTS = 3
_FLOW_SECONDS = 120.0
_TRANSACTIONS_AFTER = 50
"""So many come after a fault before everything has to be committed."""
_MOST_QUIET_SECONDS = 0.5
"""Between two faults."""


class EndedBadly(Violation):
    """The engine ended in a way that no fault explains, or without a sentence."""


class Stuck(Violation):
    """Something does not come, though the engine runs, or is started again and again."""


@dataclass(frozen=True)
class Happening:
    """A fault, and what came of it."""

    fault: str
    outcome: str
    seconds: float
    """From the fault's begin until everything that was in the binlog at its end was committed."""


@dataclass
class Report:
    """What a trial has seen."""

    happenings: list[Happening] = field(default_factory=list)
    transactions: int = 0
    rows: int = 0
    commits: int = 0
    snapshots: Counter[str] = field(default_factory=Counter)
    """How those of tables ended: done, cancelled, or why they were set aside."""


class Trial:
    """`names` are the faults to choose from; `command` starts the engine; `out` is to be a new folder.

    `flow_seconds`: how long it may take until what is in the binlog is committed, and noted as all there is.
    `heartbeat_seconds`: of the stream; after four without a byte the engine connects again.
    """

    def __init__(
        self,
        server: Server,
        out: Path,
        *,
        seed: int,
        names: Sequence[str] = tuple(FAULTS),
        most_rows: int = 2000,
        command: Sequence[str] = (COMMAND,),
        flow_seconds: float = _FLOW_SECONDS,
        heartbeat_seconds: float = 0.25,
    ) -> None:
        self._server = server
        self._out = out.resolve()
        self._seed = seed
        self._names = names
        self._most_rows = most_rows
        self._command = command
        self._random = random.Random(seed)
        self._flow_seconds = flow_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._starts = 0
        self._last_words = ""
        """What the engine said when it ended last."""
        self._clients: list[Client] = []
        self._calls: FailingCalls | None = None
        self.report = Report()

    def run(self, count: int, most_seconds: float = math.inf) -> Report:
        """So many faults, one after the other; none begins after `most_seconds`. Raises `Violation`."""
        deadline = time.monotonic() + most_seconds
        server = self._server
        create_tables(server)
        with ExitStack() as stack:
            self._proxy = stack.enter_context(Proxy((server.host, server.port), self._seed))
            if not FAILING_CALLS.isdisjoint(self._names):
                self._calls = stack.enter_context(FailingCalls(self._out))
            self._engine = self._start()
            stack.callback(lambda: self._engine.__exit__(None, None, None))
            self._follower = stack.enter_context(Follower(self._out))
            with ExitStack() as load:
                for number in range(CLIENTS):
                    client = Client(server, number, self._seed, self._most_rows)
                    self._clients.append(load.enter_context(client))
                self._requester = load.enter_context(Requester(self._out, self._seed))
                self._flow()
                for name in self._chosen(count):
                    if time.monotonic() > deadline:
                        break
                    time.sleep(self._random.random() * _MOST_QUIET_SECONDS)
                    self.report.happenings.append(self._suffer(name))
            # What was prepared is in the output; a client that has stopped does not end it.
            roll_back_prepared(server)
            self._flow()
            self.report.transactions = self._transactions()
            self._read_unknown_tables()
            self._engine.stop()
            self._engine.wait_until_gone()
            self._compare(self._follower.finish())
        return self.report

    def _chosen(self, count: int) -> Iterator[str]:
        """Each fault as often as the others, in an order by chance."""
        waiting: list[str] = []
        for _ in range(count):
            waiting = waiting or self._random.sample(self._names, len(self._names))
            yield waiting.pop()

    def _suffer(self, name: str) -> Happening:
        begun, starts = time.monotonic(), self._starts
        with self._explained():
            FAULTS[name](self._scene())
            self._proxy.faults = NONE
            goal = self._transactions() + _TRANSACTIONS_AFTER
            wait_until(lambda: self._transactions() >= goal, "transactions")
            self._flow()
        if self._calls is not None:
            self._calls.disarm()
        outcome = "went on" if self._starts == starts else "ended, was started again"
        return Happening(name, outcome, time.monotonic() - begun)

    def _scene(self) -> Scene:
        return Scene(
            engine=self._engine,
            server=self._server,
            proxy=self._proxy,
            out=self._out,
            random=self._random,
            command=self._command,
            without_work=self._without_work,
            flow=self._flow,
            flow_seconds=self._flow_seconds,
            calls=self._calls,
        )

    def _transactions(self) -> int:
        return sum(client.transactions for client in self._clients)

    def _flow(self) -> None:
        """Wait until all that is in the binlog now is committed; start the engine again if it has ended."""
        goal = end_of_binlog(self._server)

        def has_come() -> bool:
            self._follower.check()
            self._keep_running()
            last = self._engine.log.latest()
            return last is not None and (last.position.file, last.position.position) >= goal

        with self._explained():
            wait_until(has_come, f"flow up to {goal}", self._flow_seconds)

    def _wait_for_snapshots(self) -> None:
        """Until none is under way."""

        def are_over_now() -> bool:
            self._follower.check()
            self._keep_running()
            return snapshots_are_over(self._out)

        with self._explained():
            wait_until(are_over_now, "end of the snapshots", self._flow_seconds)

    @contextmanager
    def _without_work(self) -> Iterator[None]:
        """Meanwhile there are no transactions and no snapshots."""
        with self._requester.paused():
            self._wait_for_snapshots()
            with at_rest(self._clients):
                yield

    def _read_unknown_tables(self) -> None:
        """Have tables read again of which not all rows are known, such as that of a cancelled snapshot."""
        self._wait_for_snapshots()
        if names := self._follower.unknown_tables():
            request_snapshot(self._out, patterns(names))
            self._wait_for_snapshots()
        if names := self._follower.unknown_tables():
            state = snapshot_state(self._out)
            raise Violation(f"after a snapshot, not all rows of {names} are known: {state}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise a wait that was too long as `Stuck`, with what is known of the engine."""
        starts = self._starts
        try:
            yield
        except Violation:
            raise
        except AssertionError as error:
            last = self._engine.log.latest()
            raise Stuck(
                f"{error}: committed up to {None if last is None else last.position}; "
                f"processes {self._processes()}; {self._engine.stderr[-500:]}; "
                f"started again {self._starts - starts} times, the last time after {self._last_words[-500:]}"
            ) from None

    def _processes(self) -> dict[str, str]:
        """What each process of the engine is doing: its state, and where in the kernel it waits."""
        found = {}
        for role, pid in self._engine.session().items():
            with suppress(OSError):
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                found[role] = f"{state} {Path(f'/proc/{pid}/wchan').read_text()}"
        return found

    def _start(self) -> EngineRun:
        arguments = command_line(
            self._server,
            self._out,
            "--snapshot-when-changed",
            port=self._proxy.port,
            start="snapshot",
            commit_interval=0.05,
            heartbeat_seconds=self._heartbeat_seconds,
            retry_seconds=60,
            **SETTINGS,
        )
        self._starts += 1
        environment = {} if self._calls is None else self._calls.environment
        return EngineRun(arguments, self._out, environment=environment, command=self._command)

    def _keep_running(self) -> None:
        """Start the engine again if it has ended: in order, by SIGKILL, or with a sentence."""
        if self._engine.running:
            return
        ended = self._engine.wait()
        self._engine.wait_until_gone()
        is_explained = ended.status in (0, -signal.SIGKILL, -signal.SIGTERM) or (
            ended.status == 1 and ended.stderr.strip()
        )
        if not is_explained or "Traceback" in ended.stderr or "please report" in ended.stderr:
            raise EndedBadly(f"status {ended.status}: {ended.stderr[-1000:]}")
        self._last_words = ended.stderr.strip()
        with suppress(OSError):
            self._engine.__exit__(None, None, None)
        self._engine = self._start()

    def _compare(self, replayed: dict[str, Counter[tuple[object, ...]]]) -> None:
        """The replay with the server's tables, and the output's files with its log."""
        self.report.rows, self.report.commits = self._follower.rows, self._follower.commits
        self.report.snapshots = self._follower.snapshots
        for name, table in TABLES.items():
            columns = ", ".join(table.columns)
            shown = Counter(self._server.query(f"SELECT {columns} FROM {DATABASE}.{name}"))
            if replayed[name] != shown:
                lost, added = shown - replayed[name], replayed[name] - shown
                raise Violation(f"{name}: lost {list(lost)[:3]}, in addition {list(added)[:3]}")
        problems = verify(self._out).problems
        if problems:
            raise Violation(f"verify: {problems[0]}")
