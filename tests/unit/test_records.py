"""Records: what several threads do at once."""

from __future__ import annotations

import subprocess
import sys

from tests import PROJECT

FIRST_READS = """
import sys, threading
from engine.output.commit import Commit
# Threads take turns as often as they can.
sys.setswitchinterval(1e-6)
line = b'{"format": 1, "version": 0, "files": []}'
together = threading.Barrier(4)
def read():
    together.wait()
    try:
        Commit.from_json(line)
    except ValueError:
        pass
threads = [threading.Thread(target=read) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_may_read_the_first_record_of_a_class_at_once() -> None:
    ended = subprocess.run([sys.executable, "-c", FIRST_READS], cwd=PROJECT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
