"""The perf harness: peers are measured in turn, what fails is left out with the reason, tables add up."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from perf.archive import archive_case
from perf.binlog import Binlog, ServedBinlog, binlog_of, served
from perf.case import Case, CaseResult, PeerResult, Settings
from perf.cases import CASES, end_to_end
from perf.figures import Figure, least_ratio, ratio, seconds
from perf.latency import condition
from perf.machine import machine_facts, machine_name, machine_title
from perf.measurement import Measurement, PeerError, Usage, run_command
from perf.memory import PROPORTIONAL, RESIDENT, MemoryWatch, processes_of
from perf.peer import Peer
from perf.plots import draw_plots
from perf.records import Record, read_machines, read_records
from perf.report import (
    figures_table,
    markdown_details,
    markdown_figures,
    markdown_headlines,
    markdown_summary,
    text_report,
    write_between_markers,
)
from perf.runner import run_case
from perf.sampling import by_process
from perf.scaling import size_case
from perf.workloads import BULK, DECODED, TRANSACTIONS
from tests.servers import Server, UnavailableError

RAW = {"peer": "mysqlbinlog --raw"}
FACTS = {"cores": 2, "processor": "Intel(R) Xeon(R) Processor", "memory_gb": 25, "python": "3.11.7"}
DISK = {"file_system": "ext4", "disk_mb_per_second": 1800, "disk_flush_ms": 0.12}


class Timed(Peer[object]):
    """Takes the seconds that it was given, one after the other."""

    def __init__(self, name: str, seconds: list[float], order: list[str]) -> None:
        self.name = name
        self.remark = f"remark of {name}"
        self.seconds = list(seconds)
        self.order = order

    def measure(self, subject: object) -> Measurement:
        self.order.append(self.name)
        if not self.seconds:
            raise PeerError("it ran out of seconds")
        return Measurement(self.seconds.pop(0), 0.5, {self.name: Usage(1.0, 0.25, 10_000_000)})


class Missing(Timed):
    def prepare(self) -> None:
        raise PeerError("there is no such program here")


@pytest.fixture
def binlog(tmp_path: Path) -> Binlog:
    path = tmp_path / "binlog"
    path.write_bytes(bytes(1_000_000))
    return Binlog(BULK, 0.01, path)


def case_of(binlog: Binlog, *peers: Peer[object]) -> Case[object]:
    return Case(
        "bulk", "a load", "end to end", lambda: binlog, lambda given: contextlib.nullcontext(given), peers
    )


@pytest.fixture
def result(binlog: Binlog) -> CaseResult:
    order: list[str] = []
    peers = (
        Timed("engine", [2.0, 9.0, 1.0], order),
        Timed("peer", [4.0, 5.0, 3.0], order),
        Timed("broken", [1.0], order),
        Missing("missing", [], order),
    )
    result = run_case(case_of(binlog, *peers), 3, lambda line: None)
    assert order == ["engine", "peer", "broken", "peer", "broken", "engine", "engine", "peer"]
    return result


def test_medians_and_ratios(result: CaseResult) -> None:
    engine, peer, broken, missing = result.peers
    assert (engine.seconds, peer.seconds, result.ratio(peer)) == (2.0, 4.0, 2.0)
    assert engine.process_medians() == {"engine": Usage(1.0, 0.25, 10_000_000)}
    assert broken.runs == [] and broken.skipped == "it ran out of seconds"
    assert missing.skipped == "there is no such program here"
    assert result.ratio(missing) is None
    assert result.rows == 10_000


def test_reports_contain_everything(result: CaseResult, tmp_path: Path) -> None:
    machine = machine_facts(tmp_path)
    text = text_report(result)
    for expected in ("5,000", "× 2.00", "remark of peer", "skipped: there is no such program here"):
        assert expected in text
    record = Record(result, machine, {"scale": 0.01, "repeat": 3})
    assert "| bulk | 5,000 | 2.00 | – | – |" in markdown_summary([record])
    details = markdown_details([record])
    assert "| peer | 4.000 | 3.000 – 5.000 | 2,500 | 0 | × 2.00 | 0.50 | remark of peer |" in details
    written = json.loads(record.json())
    assert written["peers"]["peer"]["engine_rate_multiple"] == 2.0
    assert [run["seconds"] for run in written["peers"]["engine"]["runs"]] == [2.0, 9.0, 1.0]
    assert written["peers"]["missing"]["skipped"] == "there is no such program here"


def test_records_come_back_as_they_were_written(result: CaseResult, tmp_path: Path) -> None:
    record = Record(result, machine_facts(tmp_path), {"scale": 0.01, "repeat": 3})
    record.write(tmp_path / "intel-xeon")
    assert read_records(tmp_path / "intel-xeon", ["missing", "bulk"]) == [record]
    (tmp_path / "no-results").mkdir()
    assert read_machines(tmp_path, ["missing", "bulk"]) == {"intel-xeon": [record]}


def test_a_case_that_fails_says_why(binlog: Binlog) -> None:
    def no_server(given: object) -> NoReturn:
        raise UnavailableError("there is no server")

    case = replace(case_of(binlog, Timed("engine", [1.0], [])), offer=no_server)
    result = run_case(case, 3, lambda line: None)
    assert [peer.skipped for peer in result.peers] == ["there is no server"]
    assert "skipped: there is no server" in text_report(result)


def test_what_takes_long_runs_less_often(binlog: Binlog) -> None:
    peers = Timed("engine", [1.0, 1.0, 1.0], []), Timed("slow", [9.0], [])
    peers[1].most_runs = 1
    result = run_case(case_of(binlog, *peers), 3, lambda line: None)
    assert [len(peer.runs) for peer in result.peers] == [3, 1]


def test_figures_are_read_off_the_results(result: CaseResult) -> None:
    results = {"bulk": result}
    assert ratio("bulk", "peer")(results) == 2.0
    assert ratio("bulk", "missing")(results) is None
    assert least_ratio("peer", "bulk")(results) == 2.0
    assert seconds("bulk", "peer", 1000)(results) == 4000
    at_most = Figure("x", "y", 2.0, seconds("bulk", "peer"), "s", at_least=False)
    assert at_most.score(4.0) == 0.5
    by_name = {line[0]: line for line in figures_table([result])}
    assert by_name["end to end, bulk"][2:] == ("≥ × 1", "", "not measured")
    assert set(CASES) >= {"bulk", "transactions", *(f"decode-{workload.name}" for workload in DECODED)}


def test_each_machine_has_a_column(result: CaseResult) -> None:
    raw = replace(result, peers=[replace(peer, name=RAW.get(peer.name, peer.name)) for peer in result.peers])
    amd = Record(raw, FACTS | {"processor": "AMD EPYC"}, {"repeat": 3})
    intel = Record(replace(raw, name="many"), FACTS | DISK, {"repeat": 5})
    figures = markdown_figures([[amd], [intel]])
    assert "|  | against | asked | AMD EPYC | Intel Xeon |" in figures
    assert "| end to end, bulk | mysqlbinlog --raw | ≥ × 1 | × 2, reached | not measured |" in figures
    reached = "| mysqlbinlog --raw | ≥ × 1.5 | not measured | × 2, reached |"
    assert f"| end to end, 300 tables, some used more than others {reached}" in figures
    headlines = markdown_headlines([[amd], [intel]])
    assert "| end to end, bulk | mysqlbinlog --raw | × 2 | not measured |" in headlines
    assert "decode, bulk inserts" not in headlines
    assert "- 2 cores of AMD EPYC, 25 GB, its disk not measured, Python 3.11.7; medians of 3" in headlines
    assert "Intel Xeon, 25 GB, ext4 that writes 1,800 MB/s and flushes in 0.12 ms, Python" in headlines


def test_machine_facts_name_no_machine(tmp_path: Path) -> None:
    import platform

    facts = machine_facts(tmp_path)
    assert platform.node() not in json.dumps(facts)
    named = subprocess.run(["df", "--output=fstype", tmp_path], capture_output=True, text=True, check=True)
    assert facts["file_system"] == named.stdout.split()[1]
    assert float(facts["disk_mb_per_second"]) > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("processor", "title", "name"),
    [
        ("AMD EPYC", "AMD EPYC", "amd-epyc"),
        ("Intel(R) Xeon(R) Processor", "Intel Xeon", "intel-xeon"),
        ("Intel(R) Xeon(R) CPU E5-2670 v3 @ 2.30GHz", "Intel Xeon E5-2670 v3", "intel-xeon-e5-2670-v3"),
    ],
)
def test_kinds_of_machine(processor: str, title: str, name: str) -> None:
    assert machine_title({"processor": processor}) == title
    assert machine_name({"processor": processor}) == name


def test_report_goes_between_markers(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    assert not write_between_markers(page, "table")
    page.write_text("before\n<!-- perf:start -->\nold\n<!-- perf:end -->\nafter\n")
    assert write_between_markers(page, r"new \1 table")
    text = page.read_text()
    assert text == "before\n<!-- perf:start -->\n\nnew \\1 table\n\n<!-- perf:end -->\nafter\n"


def test_commands_are_measured_from_outside() -> None:
    done = run_command(
        [sys.executable, "-c", "x = b'x' * 80_000_000; import time; time.sleep(0.2); print(1)"]
    )
    assert done.output == "1\n"
    assert done.seconds >= 0.2
    assert 80_000_000 < done.usage.peak_memory < 200_000_000
    with pytest.raises(PeerError, match="no such thing"):
        run_command([sys.executable, "-c", "raise SystemExit('no such thing')"])
    with pytest.raises(PeerError, match="still running"):
        run_command([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.1)


def test_memory_of_a_command_and_its_children() -> None:
    grandchild = "import time; kept = b'x' * 50_000_000; print(1, flush=True); time.sleep(60)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}])"
    with subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "1\n"
            seen = processes_of(process.pid)
            watch = MemoryWatch()
            watch.look(process.pid)
        finally:
            for pid in (int(name.split()[1]) for name in seen if name != "supervisor"):
                os.kill(pid, signal.SIGKILL)
    assert seen.pop("supervisor").peak_memory < 50_000_000
    ((_, usage),) = seen.items()
    assert usage.proportional_memory is not None
    assert usage.peak_memory >= usage.proportional_memory > 50_000_000
    assert watch.values()[RESIDENT] > 60


def test_samples_fall_into_kinds_of_work() -> None:
    script = """
          python 40 cpu-clock/freq=1999/:  7f00 _PyEval_EvalFrameDefault (/usr/lib/libpython3.11.so.1.0)
  binlog-network 40 cpu-clock/freq=1999/:  ffff8 _copy_to_iter ([kernel.kallsyms])
  binlog-network 40 cpu-clock/freq=1999/:  7f01 [unknown] (/tmp/perf-40.map)
      ZMQbg/IO/0 40 raw_syscalls:sys_enter: NR 45 (3, 30, 1, 2, 3, 0) ffff trace ([kernel.kallsyms])
   binlog-dec-0 41 cpu-clock/freq=1999/:  ffff8 do_wp_page ([kernel.kallsyms])
    """
    seen = by_process(script.splitlines())
    assert set(seen) == {"network", "decoder-0"}
    assert set(seen["network"].kinds) == {"Python", "system: copies", "compiled kernels"}
    assert seen["network"].calls == {"recvfrom": 1}
    assert set(seen["decoder-0"].kinds) == {"system: pages"}


def test_plots_of_what_there_is(result: CaseResult, tmp_path: Path) -> None:
    latency = replace(
        result,
        name="latency",
        peers=[PeerResult(condition(0.2, 0.5), "", [Measurement(0.2, values={"p99 ms": 200.0})])],
    )
    drawn = draw_plots([replace(result, name="workers-x"), latency], tmp_path)
    assert {plot.path.name for plot in drawn} == {"figures.png", "latency.png", "scaling.png"}
    assert all(plot.path.read_bytes().startswith(b"\x89PNG") for plot in drawn)
    assert draw_plots([], tmp_path) == []


@pytest.mark.server
def test_a_long_binlog_is_read_to_its_end(mysql97: Server, tmp_path: Path) -> None:
    case = size_case(1.0, Settings(scale=0.002, workers=1, work=tmp_path))
    result = run_case(case, 1, lambda line: None)
    assert {peer.name: peer.skipped for peer in result.peers if peer.skipped} == {}
    assert result.rows == 10 * 1000
    proportional, resident = result.engine.value(PROPORTIONAL), result.engine.value(RESIDENT)
    assert proportional is not None and resident is not None and 0 < proportional <= resident


@pytest.mark.server
def test_a_tiny_case_on_a_real_server(mysql97: Server, tmp_path: Path) -> None:
    case = end_to_end(TRANSACTIONS, Settings(scale=0.002, workers=1, work=tmp_path))
    # Not Debezium, which takes longer to start than all of them together, nor go-mysql: so long it compiles.
    quick = case.only_with(["drain", "mysqlbinlog", "connector", "mysql-replication"])
    result = run_case(quick, 1, lambda line: None)
    skipped = {peer.name: peer.skipped for peer in result.peers if peer.skipped}
    # A machine without a toolchain goes without the peers that need it.
    assert [reason for reason in skipped.values() if not reason.startswith("this machine has no ")] == []
    assert {"network", "decoder-0", "sink"} <= set(result.engine.process_medians())
    assert result.engine.seconds > 0
    assert result.engine.start_up_seconds is not None and result.engine.start_up_seconds > 0
    assert result.rows == 400


@pytest.mark.server
def test_an_archive_is_read_by_a_task_and_by_the_command(mysql97: Server, tmp_path: Path) -> None:
    result = run_case(archive_case(Settings(scale=0.002, workers=1, work=tmp_path)), 1, lambda line: None)
    assert [peer.skipped for peer in result.peers] == [None, None]
    assert all(peer.seconds > 0 for peer in result.peers)


@pytest.mark.server
def test_a_kept_binlog_is_served_again(mysql97: Server) -> None:
    binlog = binlog_of(BULK, 0.002)
    with served(binlog) as subject:
        assert isinstance(subject, ServedBinlog)
        sizes = dict(row[:2] for row in subject.server.query("SHOW BINARY LOGS"))
        assert sizes[subject.file] == binlog.size
        assert subject.empty_file != subject.file
