"""Every path that a user gives, in every way in which it cannot be used: one sentence that names it.

A table of commands with a place for a path, and one of paths; what a path is for says which of them are bad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.binlog.samples import sample_binlogs
from tests.support.certificates import Authority
from tests.support.restricted import python_restricted, run_restricted

BINLOG = str(sample_binlogs()[0])
RUN = ("run", "--user=u", "--port=1")
OUT = "--out={new}"

READ, WRITE, FOLDER, OUTPUT, SOCKET = "file to read", "file to write", "folder to write", "output", "socket"

COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (FOLDER, (*RUN, "--out={path}")),
    (WRITE, (*RUN, OUT, "--report={path}")),
    (READ, (*RUN, OUT, "--config={path}")),
    (READ, (*RUN, OUT, "--password-file={path}")),
    (READ, (*RUN, OUT, "--password3-file={path}")),
    (READ, (*RUN, OUT, "--defaults-file={path}")),
    (READ, (*RUN, OUT, "--tls-ca={path}")),
    (READ, (*RUN, OUT, "--tls-cert={path}")),
    (READ, (*RUN, OUT, "--tls-cert={certificate}", "--tls-key={path}")),
    (READ, (*RUN, OUT, "--server-public-key={path}")),
    (SOCKET, (*RUN, OUT, "--socket={path}")),
    (READ, ("decode", "{path}", OUT)),
    (READ, ("decode", BINLOG, "{path}", OUT)),
    (READ, ("decode", BINLOG, OUT, "--config={path}")),
    (FOLDER, ("decode", BINLOG, "--out={path}")),
    (WRITE, ("decode", BINLOG, OUT, "--report={path}")),
    (READ, ("events", "{path}")),
    (READ, ("events", "--user=u", "--port=1", "--host=127.0.0.1", "--tls-ca={path}")),
    (SOCKET, ("events", "--user=u", "--socket={path}")),
    (OUTPUT, ("status", "{path}")),
    (OUTPUT, ("vacuum", "{path}", "--retain=1d")),
    (READ, ("serve", "{path}")),
    (READ, ("serve", BINLOG, "--tls-cert={path}")),
    (READ, ("serve", BINLOG, "--tls-cert={certificate}", "--tls-key={path}")),
)

EVERYTHING = (READ, WRITE, FOLDER, OUTPUT, SOCKET)
PATHS: dict[str, tuple[tuple[str, ...], str]] = {
    "missing": ((READ, OUTPUT, SOCKET), "none"),
    "in a missing folder": ((READ, WRITE, OUTPUT, SOCKET), "none/none"),
    "file": ((FOLDER, OUTPUT, SOCKET), "file"),
    "folder": ((READ, WRITE, SOCKET), "folder"),
    "below a file": (EVERYTHING, "file/x"),
    "too long a name": (EVERYTHING, 300 * "x"),
    "too long a path": (EVERYTHING, 30 * (200 * "y" + "/") + "x"),
    "loop": (EVERYTHING, "loop"),
    "below a loop": (EVERYTHING, "loop/x"),
    "link to nowhere": ((READ, FOLDER, OUTPUT, SOCKET), "dangling"),
    "folder that may not be entered": (EVERYTHING, "locked"),
    "in a folder that may not be entered": (EVERYTHING, "locked/x"),
    "file that may not be read": (EVERYTHING, "secret"),
    "folder that may not be written": ((FOLDER,), "fixed"),
    "in a folder that may not be written": ((WRITE, FOLDER), "fixed/x"),
    "kernel's folder": ((WRITE, FOLDER), "/proc/none/x"),
    "another kernel's folder": ((WRITE, FOLDER), "/sys/none"),
    "user without a home": ((), "~nobody-has-this-name/x"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("paths")
    (folder / "file").write_text("no such thing")
    (folder / "secret").touch(mode=0)
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("none/none")
    (folder / "folder").mkdir()
    (folder / "fixed").mkdir(mode=0o500)
    (folder / "locked").mkdir(mode=0)
    yield folder
    (folder / "locked").chmod(0o700)


@pytest.fixture(scope="module")
def filled_in(folder: Path) -> Callable[[tuple[str, ...], str], list[str]]:
    """The arguments of a command with a path."""
    issued = Authority(folder).issue("server", ["db1.example"])

    def fill_in(command: tuple[str, ...], path: str) -> list[str]:
        return [
            part.format(path=path, new=folder / "new", certificate=issued.certificate) for part in command
        ]

    return fill_in


def in_one_sentence(status: int, said: str, path: str) -> bool:
    return (
        status == 1
        and said.startswith("binlog-engine: ")
        and said.count("\n") == 1
        and path in said
        and "met a bug" not in said
    )


def test_every_command_with_every_bad_path(
    folder: Path, filled_in: Callable[[tuple[str, ...], str], list[str]]
) -> None:
    cases = [
        (command, str(folder / path))
        for use, command in COMMANDS
        for uses, path in PATHS.values()
        if use in uses
    ]
    said = run_restricted([filled_in(command, path) for command, path in cases])
    wrong = [
        f"{' '.join(command)} with {path[:200]}: {status} {text}"
        for (command, path), (status, text) in zip(cases, said, strict=True)
        if not in_one_sentence(status, text, path)
    ]
    assert not wrong, "\n".join(wrong)
    assert not (folder / "new").exists()


def test_the_home_of_an_unknown_user(filled_in: Callable[[tuple[str, ...], str], list[str]]) -> None:
    path = "~nobody-has-this-name/x"
    names = ("tls-ca", "tls-cert", "server-public-key", "defaults-file", "password-file")
    for status, text in run_restricted(
        [filled_in((*RUN, OUT, f"--{name}={{path}}"), path) for name in names]
    ):
        assert in_one_sentence(status, text, path), text


def test_an_option_file_with_a_bad_include(
    folder: Path, filled_in: Callable[[tuple[str, ...], str], list[str]]
) -> None:
    options = folder / "my.cnf"
    for path in ("locked/x", "loop", "file/x", 300 * "x"):
        options.write_text(f"[client]\n!include {folder / path}\n")
        ((status, text),) = run_restricted([filled_in((*RUN, OUT, "--defaults-file={path}"), str(options))])
        assert in_one_sentence(status, text, str(folder / path)), text


def test_a_path_with_a_nul(folder: Path, filled_in: Callable[[tuple[str, ...], str], list[str]]) -> None:
    config = folder / "engine.toml"
    config.write_text('out = "a\\u0000b"')
    ((status, text),) = run_restricted([filled_in((*RUN, "--config={path}"), str(config))])
    assert in_one_sentence(status, text, str(config)), text


@pytest.mark.parametrize("name", ["none", "file", "loop", "locked", "fixed"])
def test_another_folder_for_temporary_files(
    folder: Path, tmp_path: Path, filled_in: Callable[[tuple[str, ...], str], list[str]], name: str
) -> None:
    """Python takes the next one that it knows."""
    command = filled_in((*RUN, "--out={path}"), str(tmp_path / "out"))
    ((status, text),) = run_restricted([command], {"TMPDIR": str(folder / name)})
    assert in_one_sentence(status, text, "127.0.0.1:1"), text


@pytest.mark.parametrize("name", ["file", "loop", "locked", "fixed", 300 * "x"])
def test_no_folder_for_kernels(folder: Path, name: str) -> None:
    """They are compiled and not stored."""
    code = (
        "import numpy as np; from engine.kernels.kernel import read_u16; print(read_u16(np.ones(2, 'u1'), 0))"
    )
    cache = {"XDG_CACHE_HOME": str(folder / name), "NUMBA_CACHE_DIR": ""}
    assert python_restricted("-c", code, environment=cache).strip() == "257"
