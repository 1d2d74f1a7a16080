"""Initialised data folders, made once for each installation and copied for each server.

A fresh folder gets the system tables as its product makes them. Then the server runs on it once, to have its
files, keys and certificates in place and its accounts put straight: root of this machine without a password,
and no anonymous user, who would come before users of any host.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from .cache import UnavailableError, cached
from .installations import Installation
from .server import Server, start_options

SYSTEM_TABLES = (
    "*_system_tables.sql",
    "*_performance_tables.sql",
    "*_system_tables_data.sql",
    "fill_help_tables.sql",
    "maria_add_gis_sp_bootstrap.sql",
)

# What a server makes anew, and must: two servers of one UUID cannot replicate.
NOT_IN_TEMPLATE = ("auto.cnf", "binlog.*")


def template(name: str, installation: Installation) -> Path:
    """The initialised data folder of the flavor called `name`, made on first use."""
    identity = repr((installation.command, installation.version)).encode()
    folder = f"{name}-data-{hashlib.sha256(identity).hexdigest()[:8]}"
    return cached(folder, lambda partial: _build(name, installation, partial / "data")) / "data"


def _build(name: str, installation: Installation, data: Path) -> None:
    if installation.data is not None:
        shutil.copytree(installation.data, data)
    elif installation.flavor.is_mariadb or installation.flavor.series == "5.6":
        _bootstrap(installation, data)
    else:
        _run(installation, data, "--initialize-insecure")
    server = Server(name, installation, data, {"log_bin": None})
    with server:
        server.execute(
            "DELETE FROM mysql.user WHERE User = '' OR Host NOT IN ('localhost', '127.0.0.1', '::1')",
            "DELETE FROM mysql.db",
            "FLUSH PRIVILEGES",
            "DROP DATABASE IF EXISTS test",
        )
        server.stop()
        shutil.rmtree(data)
        shutil.copytree(server.data_directory, data, ignore=shutil.ignore_patterns(*NOT_IN_TEMPLATE))


def _bootstrap(installation: Installation, data: Path) -> None:
    """Feed the product's SQL files to a server that has no system tables yet, as its install script does."""
    data.mkdir()
    scripts = [path for name in SYSTEM_TABLES for path in sorted((installation.share or data).glob(name))]
    if not scripts:
        raise UnavailableError(f"{installation.command[-1]} comes without the SQL files of its system tables")
    prelude = b"CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n"
    _run(installation, data, "--bootstrap", sql=prelude + b"\n".join(path.read_bytes() for path in scripts))


def _run(installation: Installation, data: Path, mode: str, sql: bytes = b"") -> None:
    done = subprocess.run(
        [*installation.command, *start_options(installation), f"--datadir={data}", mode],
        input=sql,
        capture_output=True,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace")[-1000:]
        raise UnavailableError(f"{installation.command[-1]} could not make a data folder ({mode}): {said}")
