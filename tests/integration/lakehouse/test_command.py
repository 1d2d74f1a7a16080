"""The `mirror` command as its users run it: beside a second one, and what it refuses."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.servers import Server
from tests.support.engine_run import EngineRun, assert_one_sentence, follow, wait_until
from tests.support.lakehouse import Lakehouse, mirror_command
from tests.support.load import Load, create_table
from tests.support.output import Output

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.timeout(900)]

PATIENCE_SECONDS = 180.0


def test_a_second_mirror_of_the_same_target(mysql97: Server, delta: Lakehouse, out: Path) -> None:
    database = "kept_twice"
    create_table(mysql97, database)
    with ExitStack() as running:
        running.enter_context(follow(mysql97, out, tables=f"{database}.*"))
        running.enter_context(Load(mysql97, database, pause=0.1))
        mirrors = [running.enter_context(mirror_command(delta, out, "--every", "1s")) for _ in range(2)]
        wait_until(lambda: any(not each.running for each in mirrors), "end of a mirror", 2 * PATIENCE_SECONDS)
        loser = next(each for each in mirrors if not each.running)
        ended = loser.wait()
        assert ended.status == 1
        assert "another program writes rows to" in ended.stderr
    mysql97.execute(f"DROP DATABASE {database}")


def test_no_commits(lake: Lakehouse, out: Path) -> None:
    with mirror_command(lake, out, "--once") as command:
        ended = command.wait(PATIENCE_SECONDS)
    assert ended.status == 1
    assert_one_sentence(ended)
    assert "there are no commits in" in ended.sentence


def test_a_version_of_pyspark_without_the_format(out: Path) -> None:
    """The tests' own PySpark is newer than both formats."""
    Output(out).commit({})
    arguments = ["mirror", str(out), "--to", "delta", "--into", "/tmp/{database}/{table}"]
    with EngineRun(arguments, out) as command:
        ended = command.wait(PATIENCE_SECONDS)
    assert ended.status == 1
    assert "delta tables need PySpark 4.2, not 4." in ended.sentence
