"""One decoder of the engine on one core, from a file into Arrow record batches (`perf.decode`)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from perf.binlog import ServedBinlog
from perf.peers.engine import REPOSITORY
from perf.peers.program import PASSES, WARM_UP_SECONDS, Program


class EngineDecoder(Program):
    """Reads the file, batches and decodes in one process."""

    name = "engine"
    remark = "file → Arrow, checksums verified, all metadata columns"
    process = "decoder"
    one_core = True

    def environment(self) -> Mapping[str, str]:
        return {"PYTHONPATH": str(REPOSITORY)}

    def expected_rows(self, subject: ServedBinlog) -> int:
        return subject.binlog.change_rows

    def command(self, subject: ServedBinlog) -> Sequence[str | Path]:
        passes = ["--warm-up", str(WARM_UP_SECONDS), "--repeat", str(PASSES), "--json"]
        return [sys.executable, "-m", "perf", "decode", "--file", subject.binlog.path, *passes]
