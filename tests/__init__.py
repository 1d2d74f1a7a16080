"""The tests, and the real servers that they and the perf harness run against."""

from pathlib import Path

PROJECT = Path(__file__).parents[1]
"""The checkout's folder."""
DATA = PROJECT / "tests" / "data"
