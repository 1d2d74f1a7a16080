"""A source that fails is tried again, with growing pauses; nothing that happens to it leaves its thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from engine.commands.fleet import follower
from engine.commands.fleet.follower import Follower
from engine.config.fleet_file import FleetSource
from engine.config.server_address import Login
from engine.config.setting_groups import ConnectionSettings, FollowSettings, PipelineSettings, StreamSettings
from engine.errors import EngineError
from engine.pipeline.decoder_pool import DecoderPool
from engine.pipeline.end_request import EndRequest
from engine.pipeline.observer import Happening, Observer
from engine.pipeline.outcome import Outcome
from tests.support.engine_run import wait_until

SOURCE = FleetSource(
    "shop",
    FollowSettings(
        connection=ConnectionSettings(user="repl"),
        pipeline=PipelineSettings(out=Path("/out")),
        stream=StreamSettings(),
    ),
    Login("repl"),
)
PATIENCE_SECONDS = 30.0
DECODERS = DecoderPool(1)


class Listener(Observer):
    def __init__(self) -> None:
        self.heard: list[Happening] = []

    def happened(self, happening: Happening) -> None:
        self.heard.append(happening)


def following(monkeypatch: pytest.MonkeyPatch, *attempts: Callable[[EndRequest], Outcome]) -> list[int]:
    """Replace the work by these attempts, one after the other; the list grows with each."""
    made: list[int] = []

    def attempt(_: object, login: object, observer: Observer, end: EndRequest, pool: object) -> Outcome:
        made.append(len(made))
        return attempts[made[-1]](end)

    monkeypatch.setattr(follower, "follow_maintained", attempt)
    return made


def fail(error: Exception) -> Callable[[EndRequest], Outcome]:
    def attempt(end: EndRequest) -> Outcome:
        raise error

    return attempt


def until_asked(end: EndRequest) -> Outcome:
    assert end.wait(PATIENCE_SECONDS)
    return Outcome(stopped=True)


def test_every_failure_is_followed_by_another_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "FIRST_PAUSE", 0.01)
    made = following(
        monkeypatch,
        fail(EngineError("access denied")),
        fail(OSError(28, "No space left on device")),
        fail(ZeroDivisionError("oops")),
        lambda end: Outcome(error="the sink process was killed", traceback="Traceback"),
        lambda end: Outcome(),
    )
    listener = Listener()
    one = Follower(SOURCE, listener, DECODERS)
    one.start()
    one.join(PATIENCE_SECONDS)
    assert one.has_ended and one.state.stage == "ended" and len(made) == 5
    assert [happening.name for happening in listener.heard] == ["source_failed"] * 4
    for happening, part in zip(
        listener.heard,
        ("access denied", "No space left", "met a bug: ZeroDivisionError", "was killed"),
        strict=True,
    ):
        assert happening.message.startswith("shop: ") and part in happening.message
        assert happening.values["source_name"] == "shop"
    assert "ZeroDivisionError" in str(listener.heard[2].values["traceback"])
    pauses = [float(str(happening.values["pause_seconds"])) for happening in listener.heard]
    assert pauses == sorted(pauses) and pauses[-1] <= 0.08


def test_a_reload_ends_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Event()

    class Failing(Listener):
        def happened(self, happening: Happening) -> None:
            failed.set()

    monkeypatch.setattr(follower, "FIRST_PAUSE", 10 * PATIENCE_SECONDS)
    made = following(monkeypatch, fail(EngineError("x")), until_asked)
    one = Follower(SOURCE, Failing(), DECODERS)
    one.start()
    assert failed.wait(PATIENCE_SECONDS) and one.state.stage == "waiting"
    one.retry_now()
    wait_until(lambda: len(made) == 2, "attempt")
    one.end()
    one.join(PATIENCE_SECONDS)
    assert one.has_ended


def test_a_changed_source_begins_when_the_old_one_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def first(end: EndRequest) -> Outcome:
        outcome = until_asked(end)
        order.append("old ended")
        return outcome

    def second(end: EndRequest) -> Outcome:
        order.append("new began")
        return Outcome()

    made = following(monkeypatch, first, second)
    old = Follower(SOURCE, Observer(), DECODERS)
    old.start()
    new = Follower(SOURCE, Observer(), DECODERS, old)
    wait_until(lambda: made, "attempt")
    new.start()
    old.end()
    new.join(PATIENCE_SECONDS)
    assert order == ["old ended", "new began"]
