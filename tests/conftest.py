"""Fixtures shared by the tests.

Servers: one of each flavor, started on first use, for the whole session. A module finds no databases of
another one there, whichever modules ran before it in the same process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import settings

from tests.servers import (
    FLAVORS,
    GTIDS,
    NO_ROW_METADATA,
    ObjectServer,
    Server,
    UnavailableError,
    get_server,
    historic_binlogs,
)
from tests.support.fewer_servers import left_out
from tests.support.seeds import RANDOM_TESTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.secured import Secured

SERVERS_ARE_REQUIRED = os.environ.get("BINLOG_ENGINE_REQUIRE_SERVERS") == "1"


def skip_or_fail(reason: UnavailableError) -> NoReturn:
    if SERVERS_ARE_REQUIRED:
        pytest.fail(str(reason))
    pytest.skip(str(reason))


# A first call may compile a kernel, so no test case has a deadline of its own.
settings.register_profile("default", deadline=None, derandomize=not RANDOM_TESTS)
settings.load_profile("default")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    deselected = set(left_out(items))
    if deselected:
        config.hook.pytest_deselected(items=list(deselected))
        items[:] = [item for item in items if item not in deselected]


@pytest.fixture(scope="session")
def servers_of_the_session() -> Iterator[Callable[[str], Server]]:
    """The session's server of a flavor, started on first use. Tests take it from `shared_server`.

    A flavor that cannot be had skips the test with the reason, or fails it where servers are required.
    """
    outcomes: dict[str, Server | UnavailableError] = {}
    with ExitStack() as running:

        def of_flavor(flavor: str) -> Server:
            if flavor not in outcomes:
                try:
                    outcomes[flavor] = running.enter_context(get_server(flavor))
                except UnavailableError as error:
                    outcomes[flavor] = error
            outcome = outcomes[flavor]
            if isinstance(outcome, Server):
                return outcome
            skip_or_fail(outcome)

        yield of_flavor


@pytest.fixture(scope="module")
def shared_server(servers_of_the_session: Callable[[str], Server]) -> Iterator[Callable[[str], Server]]:
    """The session's server of a flavor, which is reset when the module's tests are done."""
    used: dict[str, Server] = {}

    def of_flavor(flavor: str) -> Server:
        used[flavor] = servers_of_the_session(flavor)
        return used[flavor]

    yield of_flavor
    for server in used.values():
        server.reset()


@pytest.fixture(scope="module")
def own_server() -> Iterator[Callable[..., Server]]:
    """Starts a server of a flavor with options of its own, for tests that stop servers, or set them up.

    It runs until the module's tests are done.
    """
    with ExitStack() as running:

        def with_options(flavor: str, options: Mapping[str, str | None]) -> Server:
            try:
                return running.enter_context(get_server(flavor, options))
            except UnavailableError as error:
                skip_or_fail(error)

        yield with_options


@pytest.fixture(scope="module")
def gtid_server(
    shared_server: Callable[[str], Server], own_server: Callable[..., Server]
) -> Callable[[str], Server]:
    """A server of a flavor whose transactions have GTIDs: the session's, or the module's own."""

    @cache
    def of_flavor(flavor: str) -> Server:
        server = shared_server(flavor)
        return server if server.has_gtids else own_server(flavor, GTIDS)

    return of_flavor


@pytest.fixture(scope="module")
def secured_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Secured]]:
    """The module's secured server of a flavor, started on first use."""
    from tests.support.certificates import Authority
    from tests.support.secured import secured_server

    folder = tmp_path_factory.mktemp("certificates")
    authority, stranger = Authority(folder), Authority(folder, "strangers")
    servers: dict[str, Secured] = {}
    with ExitStack() as running:

        def of_flavor(flavor: str) -> Secured:
            if flavor not in servers:
                try:
                    servers[flavor] = running.enter_context(secured_server(flavor, authority, stranger))
                except UnavailableError as error:
                    skip_or_fail(error)
            return servers[flavor]

        yield of_flavor


@pytest.fixture(scope="module")
def mysql97(shared_server: Callable[[str], Server]) -> Server:
    return shared_server("mysql-9.7")


@pytest.fixture(scope="module")
def mysql56(shared_server: Callable[[str], Server]) -> Server:
    return shared_server("mysql-5.6")


@pytest.fixture(scope="module")
def mariadb1011(shared_server: Callable[[str], Server]) -> Server:
    return shared_server("mariadb-10.11")


@pytest.fixture(scope="module")
def mariadb118(shared_server: Callable[[str], Server]) -> Server:
    return shared_server("mariadb-11.8")


@pytest.fixture(scope="module", params=FLAVORS)
def server(request: pytest.FixtureRequest, shared_server: Callable[[str], Server]) -> Server:
    """Each flavor in turn."""
    return shared_server(request.param)


@pytest.fixture(params=["catalog", "full metadata"])
def metadata(request: pytest.FixtureRequest, server: Server) -> Iterator[str]:
    """Where the engine learns of the columns: the server's catalog, or the table maps alone."""
    if request.param == "catalog":
        yield request.param
        return
    if server.flavor in NO_ROW_METADATA:
        pytest.skip("this server writes no optional metadata")
    (before,) = server.query("SELECT @@GLOBAL.binlog_row_metadata")[0]
    server.execute("SET GLOBAL binlog_row_metadata = FULL")
    yield request.param
    server.execute(f"SET GLOBAL binlog_row_metadata = '{before}'")


@pytest.fixture(scope="module")
def object_server() -> Iterator[ObjectServer]:
    """An S3 server, whose buckets are the module's own."""
    try:
        with ObjectServer() as running:
            yield running
    except UnavailableError as error:
        skip_or_fail(error)


@pytest.fixture(scope="session")
def historic() -> dict[str, Path]:
    """Binlogs of servers of the past, by file name."""
    try:
        return historic_binlogs()
    except UnavailableError as error:
        skip_or_fail(error)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of the test run; Java runs only if a test asks for it."""
    from tests.support.spark_session import start_spark

    session = start_spark(tmp_path_factory.mktemp("warehouse"))
    yield session
    session.stop()
