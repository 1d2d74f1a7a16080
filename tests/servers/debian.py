"""Packages of any Debian suite, unpacked into a folder with all that they depend on.

The machine's own apt does the work (its mirror, proxy and credentials), pointed at a source list, package
lists and an empty installation status of our own: nothing on the machine changes, root is not needed, and the
result brings its own C library. So a program of any suite runs anywhere, through the loader of its own
folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from .cache import UnavailableError

ATTEMPTS = 3
KEYRING = "usr/share/keyrings/debian-archive-keyring.gpg"


def unpack(suite: str, packages: Sequence[str], root: Path, alone: Sequence[str] = ()) -> None:
    """Unpack `packages` of `suite` with their dependencies, and those of `alone` without, into `root`.

    Raises UnavailableError when the machine has no apt, or no mirror that it knows carries the suite.
    """
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise UnavailableError(
                f"packages of Debian {suite} cannot be fetched: this machine has no {program}, "
                "which Debian and Ubuntu have"
            )
    with tempfile.TemporaryDirectory(dir=root, prefix=".apt-") as workspace:
        apt = _Apt(Path(workspace))
        apt.use(suite)
        for archive in apt.download(packages, alone):
            subprocess.run(["dpkg-deb", "--extract", archive, root], check=True)


class _Apt:
    """The machine's apt with every folder that it writes moved into `workspace`."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.archives = workspace / "archives"
        self.empty = workspace / "empty"
        self.sources = workspace / "sources.list"
        self.status = workspace / "status"
        for folder in (self.archives / "partial", workspace / "lists" / "partial", self.empty):
            folder.mkdir(parents=True)
        self.status.touch()
        self.settings = {
            "Dir::State::lists": workspace / "lists",
            "Dir::State::status": self.status,
            "Dir::Cache::archives": self.archives,
            "Dir::Cache::pkgcache": "",
            "Dir::Cache::srcpkgcache": "",
            "Debug::NoLocking": "true",
            "APT::Sandbox::User": "root",
            "APT::Install-Recommends": "false",
            "APT::Update::Error-Mode": "any",
            # A signature is enough: an old mirror serves tests as well, and nothing gets installed.
            "Acquire::Check-Valid-Until": "false",
            "Acquire::Retries": "3",
            "Acquire::Languages": "none",
        }

    def run(self, *arguments: str) -> str:
        options = [word for key, value in self.settings.items() for word in ("-o", f"{key}={value}")]
        done = subprocess.run(
            ["apt-get", "--quiet", *options, *arguments],
            cwd=self.archives,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("E:")]
            raise UnavailableError(f"apt-get {arguments[0]} failed: {' '.join(lines) or done.stderr[-500:]}")
        return done.stdout

    def use(self, suite: str) -> None:
        """Read the package lists of `suite` from the first mirror that has it."""
        keyring = self._keyring()
        mirrors = _mirrors(self.run("indextargets", "--no-release-info", "--format", "$(SITE)").split())
        self.settings |= {
            "Dir::Etc::sourcelist": self.sources,
            "Dir::Etc::sourceparts": self.empty,
            "Dir::Etc::preferences": self.empty / "none",
            "Dir::Etc::preferencesparts": self.empty,
        }
        reasons = []
        for mirror in mirrors:
            self.sources.write_text(f"deb [signed-by={keyring} target=Packages] {mirror} {suite} main\n")
            try:
                self.run("update")
            except UnavailableError as error:
                reasons.append(str(error))
            else:
                return
        raise UnavailableError(
            f"no mirror that this machine's apt knows carries Debian {suite}; "
            "set BINLOG_ENGINE_DEBIAN_MIRROR to the address of one that does "
            f"({'; '.join(reasons) or 'apt has no sources'})"
        )

    def download(self, packages: Sequence[str], alone: Sequence[str]) -> list[Path]:
        """Fetch the archives; the lists are read again when a mirror has moved on meanwhile."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                if packages:
                    self.run("install", "--yes", "--download-only", *packages)
                if alone:
                    self.run("download", *alone)
                break
            except UnavailableError:
                if attempt == ATTEMPTS:
                    raise
                self.run("update")
        return sorted(self.archives.glob("*.deb"))

    def _keyring(self) -> Path:
        """Debian's archive keyring: the machine's own, else out of the package that Ubuntu has of it."""
        installed = Path("/", KEYRING)
        if installed.exists():
            return installed
        self.run("update")
        self.run("download", "debian-archive-keyring")
        (archive,) = self.archives.glob("*.deb")
        subprocess.run(["dpkg-deb", "--extract", archive, self.workspace], check=True)
        archive.unlink()
        return self.workspace / KEYRING


def _mirrors(sites: Sequence[str]) -> list[str]:
    """Addresses to try for a Debian suite: the machine's own sites, then a `debian` folder beside each."""
    chosen = os.environ.get("BINLOG_ENGINE_DEBIAN_MIRROR")
    if chosen:
        return [chosen]
    own = [site for site in dict.fromkeys(sites) if "security" not in site]
    beside = []
    for site in own:
        parts = urlsplit(site)
        parent, _, last = parts.path.rstrip("/").rpartition("/")
        if last != "debian":
            beside.append(urlunsplit(parts._replace(path=f"{parent}/debian")))
    return [*own, *dict.fromkeys(beside)]
