"""Python with permissions that bind even root, for commands that run one after the other in one process.

`python -m tests.support.restricted` takes a JSON list of argument lists on standard input, and answers with a
JSON list of exit codes and what each command wrote to standard error.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence

_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2

Said = tuple[int, str]
"""Exit code and standard error of a command."""


def run_restricted(
    commands: Sequence[Sequence[str]], environment: Mapping[str, str] | None = None
) -> list[Said]:
    """What became of each `binlog-engine` command."""
    said = python_restricted(
        "-m", "tests.support.restricted", given=json.dumps(commands), environment=environment
    )
    return [(status, text) for status, text in json.loads(said)]


def python_restricted(*arguments: str, given: str = "", environment: Mapping[str, str] | None = None) -> str:
    """What Python prints, with that on its standard input."""
    done = subprocess.run(
        [sys.executable, *arguments],
        input=given,
        env={**os.environ, "MYSQL_PWD": "", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=_drop_capabilities,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _drop_capabilities() -> None:
    """Root is bound by permissions after its next exec."""
    if os.geteuid() == 0:
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            if ctypes.CDLL(None, use_errno=True).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "a capability cannot be dropped")


def _run(arguments: list[str]) -> Said:
    from engine.cli import main

    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            status = main(arguments)
        except BaseException:
            status = -1
            traceback.print_exc()
    return status, said.getvalue()


if __name__ == "__main__":
    print(json.dumps([_run(arguments) for arguments in json.load(sys.stdin)]))
