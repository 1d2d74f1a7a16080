"""What a child process says while it waits."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from engine.pipeline import child as child_module
from engine.pipeline.child import Child, Stopped, ignore_termination
from engine.pipeline.reports import DecoderProgress, Report


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[zmq.Socket[bytes]]:
    monkeypatch.setattr(child_module, "_WAIT_MILLISECONDS", 5)
    monkeypatch.setattr(child_module, "_REPORT_SECONDS", 0.01)
    with zmq.Context() as context, context.socket(zmq.PULL) as reports:
        reports.bind(f"ipc://{tmp_path}/reports")
        reports.rcvtimeo = 10_000
        yield reports


def test_it_answers_while_it_waits_for_room(reports: zmq.Socket[bytes], tmp_path: Path) -> None:
    child = Child("decoder-0", f"ipc://{tmp_path}/reports")
    results = child.socket(zmq.PUSH, 1)
    # Nothing listens there.
    results.connect(f"ipc://{tmp_path}/results")

    def fill() -> None:
        child.progress(DecoderProgress())
        with pytest.raises(Stopped):
            while True:
                child.send(results, [b"a result"])

    waiting = threading.Thread(target=fill)
    waiting.start()
    try:
        received = [Report.unpack(reports.recv()) for _ in range(3)]
    finally:
        child.stop()
        waiting.join(10)
        child.close()
    assert {(report.process, report.body) for report in received} == {("decoder-0", DecoderProgress())}
    assert all(report.usage is not None for report in received)
    assert child.waited_seconds > 0.01


def test_before_its_first_progress_it_says_nothing(reports: zmq.Socket[bytes], tmp_path: Path) -> None:
    child = Child("network", f"ipc://{tmp_path}/reports")
    child.repeat_progress()
    child.progress(DecoderProgress())
    assert Report.unpack(reports.recv()).body == DecoderProgress()
    assert not reports.poll(50)
    child.close()


def test_a_signal_at_the_very_end_does_nothing() -> None:
    """With SIG_IGN, now and then Python prints `Signal 15 ignored due to race condition` with a traceback."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        ignore_termination()
        os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
