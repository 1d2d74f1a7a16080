"""The `verify` command: compares every file of an output with the commit log."""

from __future__ import annotations

import sys

from tqdm import tqdm

from engine.commands.vacuum import require_output
from engine.config.settings import VerifySettings
from engine.errors import printable
from engine.output.commit_log import CommitLog
from engine.output.files import opening
from engine.output.verification import Verified, verify


def verify_command(settings: VerifySettings) -> int:
    """Verify, and print each problem and a summary; returns the exit code, 1 if there is a problem."""
    out = settings.out
    require_output(out)
    with (
        opening(out),
        tqdm(total=_commits(CommitLog(out)), unit=" commits", disable=None, leave=False) as bar,
    ):
        done = verify(out, lambda _: bar.update())
    for problem in done.problems:
        print(printable(str(problem)), file=sys.stderr)
    print(_summary(done))
    return 1 if done.problems else 0


def _commits(log: CommitLog) -> int:
    return log.latest_version() + 1 - log.oldest_version()


def _summary(done: Verified) -> str:
    found = _counted(len(done.problems)) if done.problems else "no damage"
    unknown = f", {done.without_checksum:,} of them without a checksum" if done.without_checksum else ""
    return (
        f"{found} in {done.commits:,} commits with {done.rows:,} rows in {done.files:,} files of "
        f"{done.bytes:,} bytes{unknown}"
    )


def _counted(problems: int) -> str:
    return "1 problem" if problems == 1 else f"{problems:,} problems"
