"""The `serve` command: serves binlog files to any replication client."""

from __future__ import annotations

import os

from engine.config.credentials import read_variable
from engine.config.secret import Secret
from engine.config.settings import ServeSettings
from engine.net.archive_server.server import run_server
from engine.net.archive_server.server_tls import ServerTls


def serve_command(settings: ServeSettings) -> int:
    """Serve the files until SIGINT or SIGTERM; returns the exit code.

    Raises `EngineError` for files that cannot be served and a port that is taken.
    """
    variable = settings.password_env
    password = Secret() if variable is None else read_variable(variable, os.environ)
    certificate = settings.tls_cert
    tls = ServerTls.make() if certificate is None else ServerTls.load(certificate, settings.tls_key)
    run_server(settings.files, settings.address, settings.port, settings.user, password.reveal(), tls)
    return 0
