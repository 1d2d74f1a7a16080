"""What the doctor says of PySpark: its version decides what the readers can do."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import pytest

from engine.doctor import spark


@pytest.mark.parametrize(
    ("installed", "level"),
    [(None, "required"), ("3.5.6", "required"), ("4.0.5", "advice"), ("4.2.0", "ok"), ("4.3.0.dev1", "ok")],
)
def test_the_version_of_pyspark(installed: str | None, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if installed is None:
            raise PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(spark, "version", version)
    finding = next(iter(spark.check_spark()))
    assert (finding.what, finding.level) == ("PySpark", level)
