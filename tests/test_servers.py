"""The real servers themselves: each starts, answers, writes a binlog, and its own tool reads it."""

from __future__ import annotations

import subprocess

import pytest

from tests.servers import Server

pytestmark = pytest.mark.server


def test_answers(server: Server) -> None:
    version, is_logging, binlog_format = server.query("SELECT version(), @@log_bin, @@binlog_format")[0]
    product, _, series = server.flavor.partition("-")
    assert version.startswith(series)
    assert ("MariaDB" in version) == (product == "mariadb")
    assert (is_logging, binlog_format) == (1, "ROW")
