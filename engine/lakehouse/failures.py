"""What sets a table aside while all others go on, and the sentence that says why."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from engine.errors import EngineError

FAILURES = (EngineError, PySparkException, Py4JError)
"""Errors that concern one table."""

_CALLED = "An error occurred while calling"
_OUT_OF_MEMORY = "java.lang.OutOfMemoryError"


def sentence(error: Exception) -> str:
    """The first line of an error that says something; for Spark's lack of memory what to do about it."""
    text = str(error).strip()
    if _OUT_OF_MEMORY in text:
        return (
            "Spark's driver has too little memory for so many tables: give it more, for the command by "
            "SPARK_DRIVER_MEMORY=4g in the environment, and start the mirror again"
        )
    first, _, rest = text.partition("\n")
    # The next line has the error in Java.
    return rest.partition("\n")[0].removeprefix(": ") if first.startswith(_CALLED) and rest else first
