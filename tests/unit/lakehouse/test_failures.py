"""The sentences with which tables are set aside."""

from __future__ import annotations

from py4j.protocol import Py4JError

from engine.errors import EngineError
from engine.lakehouse.failures import sentence


def test_the_first_line_of_an_error() -> None:
    assert sentence(EngineError("it is not there")) == "it is not there"
    assert sentence(Py4JError("\nfirst\nsecond")) == "first"
    error = Py4JError("An error occurred while calling o68.sql.\n: java.io.IOException: disk full\n\tat a.b")
    assert sentence(error) == "java.io.IOException: disk full"


def test_a_lack_of_memory_says_what_to_do() -> None:
    error = Py4JError(
        "An error occurred while calling o12.sql.\n: java.lang.OutOfMemoryError: Java heap space"
    )
    assert "SPARK_DRIVER_MEMORY=4g" in sentence(error)
