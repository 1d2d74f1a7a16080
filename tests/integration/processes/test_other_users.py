"""A user of the same machine who is not ours: what the engine makes is closed to others, whatever the umask.

Tests of what another user may do run Python as one, which needs root.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from engine.binlog.samples import sample_binlogs
from engine.config.option_file import read_option_file
from engine.errors import EngineError
from engine.output.file_lock import locked_file
from engine.output.folder import clean_output, recover_output
from engine.output.lock import output_lock
from engine.output.storage import output_place, storage_of
from engine.output.working_folder import SPOOL_VARIABLE, make_working_folder
from engine.pipeline.fork_server import start_fork_server
from engine.pipeline.private_folder import private_folder
from engine.pipeline.slot_file import SlotFile
from tests.support.engine_run import COMMAND

ANOTHER_USER = 65534
GROUP = 54321
"""Which neither we nor the other user are in."""
OTHERS = stat.S_IRWXG | stat.S_IRWXO
LINKED = "must stay"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run Python as another user")


def as_another_user(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Python without any of our packages, which the other user may not be able to read."""
    return subprocess.run(
        [
            shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable,
            "-c",
            script,
            *map(str, arguments),
        ],
        user=ANOTHER_USER,
        group=ANOTHER_USER,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def decode_samples(out: Path, umask: int) -> list[Path]:
    """Make an output; returns what is in it."""
    done = subprocess.run(
        [COMMAND, "decode", *map(str, sample_binlogs()), "--out", str(out), "--workers=1"],
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = list(out.rglob("*"))
    assert len(made) > 5
    return made


def test_an_output_is_closed_to_others(tmp_path: Path) -> None:
    # Its place is shared, and the output is not.
    tmp_path.chmod(0o2770)
    made = [tmp_path / "out", *decode_samples(tmp_path / "out", umask=0)]
    assert [str(path) for path in made if path.lstat().st_mode & OTHERS] == []


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o2700])
def test_an_output_in_a_folder_of_other_modes_is_closed_to_others(tmp_path: Path, mode: int) -> None:
    out = tmp_path / "out"
    out.mkdir()
    out.chmod(mode)
    assert [str(path) for path in decode_samples(out, umask=0) if path.lstat().st_mode & OTHERS] == []


def test_an_output_that_is_shared_with_a_group(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    out.chmod(0o2750)
    made = decode_samples(out, umask=0o077)
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_dir()} == {0o2750}
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_file()} == {0o640}


READS_ALL = """
import os, sys
for folder, _, names in os.walk(sys.argv[1], onerror=print):
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            file.read()
        try:
            open(file.name, "r+b")
        except PermissionError:
            print("only reads", name)
"""


@needs_root
def test_the_group_reads_an_output_that_is_shared_with_it() -> None:
    with tempfile.TemporaryDirectory() as name:
        above = Path(name)
        above.chmod(0o755)
        out = above / "out"
        out.mkdir()
        os.chown(out, 0, ANOTHER_USER)
        out.chmod(0o2750)
        names = sorted(path.name for path in decode_samples(out, umask=0o022) if path.is_file())
        said = as_another_user(READS_ALL, out)
    assert sorted(said.stdout.splitlines()) == [f"only reads {name}" for name in names], said.stderr


@needs_root
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_user_outside_of_the_group_shares_an_output_with_it(umask: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        out = Path(name) / "out"
        out.mkdir()
        os.chown(out, ANOTHER_USER, GROUP)
        out.chmod(0o2750)
        pid = os.fork()
        if not pid:
            with suppress(BaseException):
                os.setgroups([])
                os.setresgid(ANOTHER_USER, ANOTHER_USER, ANOTHER_USER)
                os.setresuid(ANOTHER_USER, ANOTHER_USER, ANOTHER_USER)
                os.umask(umask)
                storage_of(out).create("_log/1.json", b"{}")
                os._exit(os.umask(0) != umask)
            os._exit(2)
        assert os.waitpid(pid, 0)[1] == 0
        made = [(out / path).stat() for path in ("_log", "_log/1.json")]
    assert [(found.st_gid, stat.S_IMODE(found.st_mode)) for found in made] == [
        (GROUP, 0o2750),
        (GROUP, 0o640),
    ]


@needs_root
def test_an_output_in_a_folder_that_its_user_cannot_list() -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        out = Path(name) / "out"
        out.mkdir(0o700)
        os.chown(out, ANOTHER_USER, ANOTHER_USER)
        pid = os.fork()
        if not pid:
            with suppress(BaseException):
                os.setgroups([])
                os.setresuid(ANOTHER_USER, ANOTHER_USER, ANOTHER_USER)
                with output_lock(out):
                    clean_output(out, recover_output(out).commit)
                os._exit(0)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0


READS = """
import os, sys
for path in sys.argv[1:]:
    try:
        print(os.listdir(path))
    except PermissionError:
        print("refused")
"""


@needs_root
def test_another_user_sees_neither_output_nor_sockets() -> None:
    start_fork_server()
    # Not below pytest's own folder, which is closed to others anyway.
    with tempfile.TemporaryDirectory() as name:
        above = Path(name)
        above.chmod(0o755)
        storage_of(above / "out").create("_log/1.json", b"{}")
        said = as_another_user(READS, private_folder(), above / "out", above)
    assert said.stdout.splitlines()[:2] == ["refused", "refused"], said.stderr
    assert "out" in said.stdout.splitlines()[2], "the folder above is open, so the test shows something"


def test_shared_memory_has_no_name_and_keeps_its_size() -> None:
    slots = SlotFile.create(1)
    try:
        assert Path(f"/proc/self/fd/{slots.descriptor}").readlink().name.endswith("(deleted)")
        seals = fcntl.fcntl(slots.descriptor, fcntl.F_GET_SEALS)
        wanted = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        assert seals & wanted == wanted
        assert not os.get_inheritable(slots.descriptor)
        with pytest.raises(PermissionError):
            os.ftruncate(slots.descriptor, 0)
    finally:
        slots.close()


OPENS = """
import sys
try:
    open(sys.argv[1], "rb")
except PermissionError:
    print("refused")
"""


@needs_root
def test_another_user_cannot_open_shared_memory() -> None:
    slots = SlotFile.create(1)
    try:
        said = as_another_user(OPENS, f"/proc/{os.getpid()}/fd/{slots.descriptor}")
        assert said.stdout.strip() == "refused", said.stderr
    finally:
        slots.close()


def _in_use(holder: str) -> EngineError:
    return EngineError(f"process {holder} has it")


WRITES: list[tuple[str, Callable[[Path], object]]] = [
    ("lock", lambda folder: locked_file(folder / "lock", 0.0, _in_use)),
    ("state.json.tmp", lambda folder: storage_of(folder).note("state.json", b"{}")),
    ("1.json.tmp", lambda folder: storage_of(folder).create("1.json", b"{}")),
]


@pytest.mark.parametrize(("name", "write"), WRITES, ids=[name for name, _ in WRITES])
def test_a_planted_link_is_not_followed(tmp_path: Path, name: str, write: Callable[[Path], object]) -> None:
    target = tmp_path / "target"
    target.write_text(LINKED)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / name).symlink_to(target)
    with pytest.raises(OSError):
        write(folder)
    assert target.read_text() == LINKED


def test_an_option_file_that_all_can_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "my.cnf"
    path.write_text("[client]\nhost=db1\npassword=secret\n")
    path.chmod(0o602)
    with pytest.raises(EngineError, match=f"can be written by every user: run chmod o-w {path}") as refused:
        read_option_file(path)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("mode", "exposed"), [(0o600, False), (0o640, False), (0o644, True)])
def test_a_password_that_all_can_read_is_warned_of(tmp_path: Path, mode: int, exposed: bool) -> None:
    path = tmp_path / "my.cnf"
    path.write_text("[client]\nhost=127.0.0.1\nport=1\nuser=u\npassword=secret\n")
    path.chmod(mode)
    command = [COMMAND, "check", f"--defaults-file={path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (f"can read the password in {path}: run chmod go-r" in done.stderr) == exposed
    assert "secret" not in done.stderr + done.stdout


def test_a_file_without_a_password_may_be_read_by_all(tmp_path: Path) -> None:
    path = tmp_path / "my.cnf"
    path.write_text("[client]\nhost=db1\n")
    path.chmod(0o644)
    assert read_option_file(path).exposed == ()


@pytest.mark.parametrize("expose", [lambda path: path.chmod(0o770), lambda path: path.chmod(0o707)])
def test_a_spool_that_others_can_write_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expose: Callable[[Path], None]
) -> None:
    monkeypatch.setenv(SPOOL_VARIABLE, str(tmp_path))
    out = output_place("s3://bucket/prefix")
    folder = make_working_folder(out)
    assert folder.stat().st_mode & OTHERS == 0
    expose(folder)
    with pytest.raises(EngineError, match="belongs to another user or can be written by others"):
        make_working_folder(out)


@needs_root
def test_a_spool_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SPOOL_VARIABLE, str(tmp_path))
    out = output_place("s3://bucket/prefix")
    os.chown(make_working_folder(out), ANOTHER_USER, ANOTHER_USER)
    with pytest.raises(EngineError, match="belongs to another user"):
        make_working_folder(out)
