"""The tests, and the real servers that they and the perf harness run against."""
