"""Engines are killed at random moments while they write to a bucket; the output shows nothing of it."""

from __future__ import annotations

import os
import random
import time

import pytest

from engine.config.retention import Retention
from engine.output.commit_log import CommitLog
from engine.output.removal import remove_old_commits
from engine.output.storage import storage_of
from engine.output.verification import verify
from tests.servers import Server
from tests.support.engine_run import end_of_binlog, kill_all
from tests.support.load import Load, create_table, replayed, selected
from tests.support.object_output import ObjectOutput
from tests.support.seeds import chosen_seed

pytestmark = [pytest.mark.server, pytest.mark.slow]

KILLS = int(os.environ.get("BINLOG_ENGINE_OBJECT_STORE_KILLS", "3"))
LONGEST_LIFE = 0.4
"""Seconds from the first commit of a run to its end."""


@pytest.mark.timeout(60 + 30 * KILLS)
def test_killing_engines_loses_and_doubles_nothing_and_leaves_nothing(
    mysql97: Server, output: ObjectOutput
) -> None:
    moments = random.Random(chosen_seed(11))
    file, position = end_of_binlog(mysql97)
    start = f"{file}:{position}"
    create_table(mysql97, "killed")
    with Load(mysql97, "killed", pause=0.001):
        for _ in range(KILLS):
            with output.follow(mysql97, start=start) as engine:
                # The first of them is the claim.
                engine.wait_for_commits(8)
                time.sleep(moments.uniform(0, LONGEST_LIFE))
                if moments.random() < 0.5:
                    kill_all(engine)
                else:
                    engine.kill("sink")
                    assert engine.wait().status == 1
                    engine.wait_until_gone()
    output.drain(mysql97, start=start)
    output.assert_sound()
    assert verify(output.url).problems == []
    assert replayed(output.url, "killed") == selected(mysql97, "killed")
    log = CommitLog(output.url)
    done = remove_old_commits(log.out, Retention(seconds=0))
    # Of the segments of ten commits the last full one is kept, also if no commit follows it.
    begun = log.latest_version() + 1
    assert done.oldest == CommitLog(output.url).oldest_version() == begun // 10 * 10 - 10
    assert done.files > 0
    output.assert_sound()
    assert verify(output.url).problems == []


def test_what_was_uploaded_for_a_commit_that_never_came_is_removed(
    mysql97: Server, output: ObjectOutput
) -> None:
    create_table(mysql97, "orphaned")
    file, position = end_of_binlog(mysql97)
    with Load(mysql97, "orphaned") as writing:
        writing.wait_for(20)
    output.drain(mysql97, start=f"{file}:{position}")
    last = CommitLog(output.url).latest_version()
    for number in (last + 1, last + 2):
        storage_of(output.url).create(f"orphaned.accounts/{number:020d}-e1-0.arrow", b"not committed")
    assert len(output.orphans()) == 2
    output.drain(mysql97)
    output.assert_sound()
    assert replayed(output.url, "orphaned") == selected(mysql97, "orphaned")
