"""How a run ends when its processes misbehave. The processes are fakes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zmq

from engine.binlog.samples import sample_binlogs
from engine.config.decode_options import DecodeOptions
from engine.errors import ConnectionFailed, EngineError
from engine.output.working_folder import LOCK_FILE
from engine.pipeline import child, supervisor
from engine.pipeline.child import Child, run_child
from engine.pipeline.fork_server import start_fork_server
from engine.pipeline.observer import Observer
from engine.pipeline.outcome import Outcome
from engine.pipeline.plan import RunPlan
from engine.pipeline.process_settings import DecoderConfig, FileSource, NetworkConfig, SinkConfig
from engine.pipeline.reports import Ended, Report
from engine.pipeline.supervisor import Supervisor
from tests.support.engine_run import wait_until

TURNS = 10


def stubborn(config: SinkConfig) -> None:
    """Does not leave when asked to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _begin(config)


def killed_while_leaving(config: SinkConfig) -> None:
    """The system runs out of memory while the last commit is made."""
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    _begin(config)


def _begin(config: SinkConfig) -> None:
    out = Path(config.out)
    out.mkdir()
    (out / LOCK_FILE).touch()
    signal.pause()


def exits(config: DecoderConfig) -> None:
    """Ends without a report."""
    os._exit(3)


def killed(config: DecoderConfig) -> None:
    """Is killed before it can report."""
    os.kill(os.getpid(), signal.SIGKILL)


def kills_the_fork_server(config: DecoderConfig) -> None:
    """The system runs out of memory, and ends the process that knows how all others end."""
    os.kill(os.getppid(), signal.SIGKILL)


def waits(config: NetworkConfig) -> None:
    """Does nothing until it is asked to end."""
    run_child("network", config.reports_endpoint, _wait)


def has_read_all(config: NetworkConfig) -> None:
    """Ends as at the end of its source."""
    run_child("network", config.reports_endpoint, lambda child: None)


def is_asked_alone(config: NetworkConfig | DecoderConfig) -> None:
    """Is asked to end, as by a signal of another program."""
    name = config.name if isinstance(config, DecoderConfig) else "network"
    run_child(name, config.reports_endpoint, _asked)


def reports_junk(config: NetworkConfig) -> None:
    """Sends its supervisor something that is no report."""
    context = zmq.Context()
    with context.socket(zmq.PUSH) as reports:
        reports.connect(config.reports_endpoint)
        reports.send(b"junk")
        signal.pause()


def _asked(child: Child) -> None:
    child.stop()
    _wait(child)


def loses_the_server(config: NetworkConfig) -> None:
    """Fails before it has sent a batch, in a way that may pass."""
    run_child("network", config.reports_endpoint, _lose)


def _lose(child: Child) -> None:
    raise ConnectionFailed("the server is gone")


def _wait(child: Child) -> None:
    poller = zmq.Poller()
    for descriptor in child.leave_descriptors:
        poller.register(descriptor, zmq.POLLIN)
    poller.poll()


def run(folder: Path, *, stop: bool) -> Outcome:
    """A run over the sample binlogs; `stop`: ask it to end when it has begun."""
    plan = RunPlan(
        origin=FileSource(tuple(sample_binlogs())),
        out=folder / "out",
        expected_commit=-1,
        decoders=1,
        decode=DecodeOptions(),
        commit_interval=1.0,
        commit_bytes=1 << 20,
        server_uuid="",
        flavor="mysql",
    )
    if stop:
        threading.Thread(target=_stop, args=(plan.out,)).start()
    return Supervisor(plan, Observer()).run()


def _stop(out: Path) -> None:
    """Ask the run to end once its sink has begun."""
    wait_until((out / LOCK_FILE).exists, "lock of the sink")
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture
def standing_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def replace(**functions: Callable[..., object]) -> None:
        for role, function in functions.items():
            monkeypatch.setattr(supervisor, f"_{role.upper()}", f"{__name__}:{function.__name__}")

    monkeypatch.setattr(supervisor, "_STOP_SECONDS", 2.0)
    monkeypatch.setattr(supervisor, "_LAST_REPORT_SECONDS", 0.5)
    return replace


def test_a_sink_that_does_not_finish_is_a_failure(standing_in: Callable[..., None], tmp_path: Path) -> None:
    standing_in(sink=stubborn, network=waits)
    outcome = run(tmp_path, stop=True)
    assert outcome.stopped
    assert outcome.error is not None
    assert outcome.error.startswith("the sink process was killed by SIGKILL")


def test_a_sink_that_is_killed_while_it_finishes_is_a_failure(
    standing_in: Callable[..., None], tmp_path: Path
) -> None:
    standing_in(sink=killed_while_leaving, network=waits)
    outcome = run(tmp_path, stop=True)
    assert outcome.error is not None and "the sink process was killed by SIGKILL" in outcome.error


def test_a_process_that_ends_without_a_word_ends_the_run(
    standing_in: Callable[..., None], tmp_path: Path
) -> None:
    standing_in(decoder=exits, network=waits)
    outcome = run(tmp_path, stop=False)
    assert (
        outcome.error
        == "the decoder-0 process exited with 3: start the engine again, it resumes from its last commit"
    )


def test_the_last_report_of_a_killed_process_is_not_waited_for(
    standing_in: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    standing_in(decoder=killed, network=waits)
    monkeypatch.setattr(supervisor, "_LAST_REPORT_SECONDS", 60.0)
    outcome = run(tmp_path, stop=False)
    assert outcome.error is not None and "the decoder-0 process was killed by SIGKILL" in outcome.error
    assert 0 < outcome.seconds < 60


def test_a_fork_server_that_is_gone_is_reported_as_the_cause(
    standing_in: Callable[..., None], tmp_path: Path
) -> None:
    standing_in(decoder=kills_the_fork_server, network=waits)
    outcome = run(tmp_path, stop=False)
    assert outcome.error is not None
    assert outcome.error.startswith("the process that all others are forked from is gone")


def test_results_without_a_reader_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_LINGER_MILLISECONDS", 60_000)
    with zmq.Context() as context, context.socket(zmq.PULL) as reports:
        sender = Child("sender", f"tcp://127.0.0.1:{reports.bind_to_random_port('tcp://127.0.0.1')}")
        results = sender.socket(zmq.PUSH, 1)
        results.connect("tcp://127.0.0.1:1")
        sender.send(results, [b"a result"])
        sender.report(Ended())
        sender.close()
        assert Report.unpack(reports.recv()).body == Ended()


def test_a_folder_whose_name_is_too_long_for_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("x" * 80)))
    with pytest.raises(EngineError, match="set TMPDIR to one of at most 75 bytes, such as /tmp"):
        start_fork_server()


def test_whether_a_failure_may_pass_is_reported_with_it(
    standing_in: Callable[..., None], tmp_path: Path
) -> None:
    standing_in(network=loses_the_server)
    outcome = run(tmp_path, stop=False)
    assert (outcome.error, outcome.retryable) == ("the server is gone", True)


def test_a_report_that_is_none_ends_the_run(standing_in: Callable[..., None], tmp_path: Path) -> None:
    standing_in(network=reports_junk)
    with pytest.raises(EngineError, match="not a valid Report"):
        run(tmp_path, stop=False)


@pytest.mark.parametrize("role", ["network", "decoder"])
def test_a_process_that_is_asked_to_end_alone_ends_the_run(
    standing_in: Callable[..., None], tmp_path: Path, role: str
) -> None:
    """Otherwise the run would go on without it, and look healthy."""
    standing_in(**{"network": waits, role: is_asked_alone})
    outcome = run(tmp_path, stop=False)
    assert not outcome.stopped
    assert outcome.error is not None and "process alone to end (SIGTERM)" in outcome.error


def test_a_run_that_is_stopped_ends_well(standing_in: Callable[..., None], tmp_path: Path) -> None:
    standing_in(network=waits)
    outcome = run(tmp_path, stop=True)
    assert (outcome.stopped, outcome.error) == (True, None)


def test_a_process_that_has_ended_does_not_wake_the_supervisor_again(
    standing_in: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What becomes readable when it ends stays readable: the supervisor would use a whole core."""
    standing_in(network=has_read_all)
    ended: list[str] = []
    turns: list[float] = []
    notice_death, take_reports = Supervisor._notice_death, Supervisor._take_reports

    def noticed(each: Supervisor, name: str, *arguments: Any) -> None:
        ended.append(name)
        notice_death(each, name, *arguments)

    def taken(each: Supervisor, reports: zmq.Socket[bytes]) -> None:
        if ended == ["network"]:
            turns.append(time.monotonic())
            if len(turns) == TURNS:
                os.kill(os.getpid(), signal.SIGTERM)
        take_reports(each, reports)

    monkeypatch.setattr(Supervisor, "_notice_death", noticed)
    monkeypatch.setattr(Supervisor, "_take_reports", taken)
    outcome = run(tmp_path, stop=False)
    assert (outcome.stopped, outcome.error) == (True, None)
    # The sink reports once a second, so most turns wait for as long as there is nothing to do.
    assert turns[TURNS - 1] - turns[0] > 3 * supervisor._POLL_MILLISECONDS / 1000
