"""A pytest plugin for `tests/setup/twice.sh`, which runs the tests that failed once more.

A test that fails only sometimes must not go unseen because all passed in the end: the last lines of the
second run name it. And a first run that could not collect everything does not count as one whose tests
failed, because side by side it may have run none at all.
"""

from __future__ import annotations

import pytest


def _reports(config: pytest.Config, *outcomes: str) -> list[pytest.TestReport | pytest.CollectReport]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return [report for outcome in outcomes for report in reporter.stats.get(outcome, ())] if reporter else []


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End with the status that pytest has for it where tests do not run side by side."""
    if any(isinstance(report, pytest.CollectReport) for report in _reports(session.config, "error")):
        session.exitstatus = pytest.ExitCode.INTERRUPTED


def pytest_unconfigure(config: pytest.Config) -> None:
    """After the closing line of the second run."""
    if not config.getoption("lf"):
        return
    broken = {report.nodeid for report in _reports(config, "failed", "error")}
    for report in _reports(config, "passed", "skipped"):
        if report.nodeid not in broken:
            reporter = config.pluginmanager.get_plugin("terminalreporter")
            assert reporter is not None
            reporter.write_line(f"{report.outcome} only in the second try: {report.nodeid}", yellow=True)
