"""Who is told that a store is away, and how long requests wait for it."""

from __future__ import annotations

import pytest

from engine.config.output_place import StoreUrl
from engine.output.storage import be_patient, storage_of, waiting
from engine.output.storage.waiting import Patience, Waiting


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setattr(waiting, "_FIRST_WARNING", 0.0)
    monkeypatch.setattr(waiting, "_FIRST_PAUSE", 0.0)
    monkeypatch.setattr(waiting, "_of_process", Patience(0.0))


def waits_for(name: str) -> bool:
    storage = storage_of(StoreUrl.parse(f"s3://lake/{name}"))
    return Waiting(lambda: storage.patience).again(f"{name} is away")


def test_each_store_has_a_patience_of_its_own() -> None:
    told: dict[str, list[str]] = {}
    for name in ("one", "two"):
        told[name] = []
        be_patient(StoreUrl.parse(f"s3://lake/{name}"), told[name].append)
    assert waits_for("two")
    assert waits_for("one")
    assert not waits_for("three")
    assert told == {name: [f"{name} is away; waiting for it since 0 s"] for name in ("one", "two")}


def test_a_process_has_one_for_the_others() -> None:
    told: list[str] = []
    be_patient(warn=told.append)
    assert waits_for("four")
    assert told == ["four is away; waiting for it since 0 s"]
    be_patient(seconds=0.0)
    assert not waits_for("four")
