"""Real servers replicate from archived binlogs, by position and by GTID, and end with the same tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.net.archive_server.server import ReplicationSource
from engine.net.archive_server.server_tls import ServerTls
from tests.servers import Server, UnavailableError, get_server
from tests.support.certificates import Authority
from tests.support.engine_run import wait_until
from tests.support.mixed_workload import DATABASE, Workload
from tests.support.same_rows import quoted_table

pytestmark = [pytest.mark.server, pytest.mark.slow]

USER, PASSWORD = "archivist", "a pass phrase"
WAIT_SECONDS = 60
MYSQL_OPTIONS = {"gtid_mode": "ON", "enforce_gtid_consistency": "ON", "performance_schema": "ON"}
LAST_TABLE = "served.last"
"""Made after everything else."""


def is_mariadb(server: Server) -> bool:
    return server.flavor.startswith("mariadb")


def own_server(flavor: str, **options: str) -> Server:
    try:
        return get_server(flavor, (options if flavor.startswith("mariadb") else MYSQL_OPTIONS | options))
    except UnavailableError as reason:
        pytest.skip(str(reason))


@dataclass
class Archived:
    """What a server wrote, and what came of it there."""

    files: Sequence[Path]
    cut: int
    """Bytes of the middle file up to the end of some transaction."""
    tables: dict[str, int | None]
    """Checksum of each table at the end."""
    gtids: str
    """All of the server's transactions."""

    def first_half(self, folder: Path) -> list[Path]:
        """Copies of the older files, the last one cut off."""
        older = self.files[: len(self.files) // 2 + 1]
        copies = [Path(shutil.copy(path, folder)) for path in older]
        copies[-1].write_bytes(copies[-1].read_bytes()[: self.cut])
        return copies


def checksums(server: Server, tables: Sequence[str]) -> dict[str, int | None]:
    return {name: server.query(f"CHECKSUM TABLE {quoted_table(name)}")[0][1] for name in tables}


def write_archive(flavor: str, folder: Path) -> Archived:
    """Run a mixed workload, a file per phase, every other one without checksums; copy the files away."""
    with own_server(flavor, server_id="11") as server:
        begin = len(server.binlogs()) - 1
        cut = 0
        for number, _ in enumerate(Workload(server, folder / "load.tsv").phases()):
            # This begins a new file, too.
            server.execute(f"SET GLOBAL binlog_checksum = {('NONE', 'CRC32')[number % 2]}")
        server.execute("CREATE DATABASE served", f"CREATE TABLE {LAST_TABLE} (a INT PRIMARY KEY, b LONGBLOB)")
        if not is_mariadb(server):
            server.execute("SET gtid_next = 'AUTOMATIC:tagged'")
        server.execute(f"INSERT INTO {LAST_TABLE} VALUES (1, REPEAT('long', 5000000))")
        server.flush_binlog()
        files = server.binlogs()[begin:-1]
        middle = files[len(files) // 2].name
        ends = server.query(f"SHOW BINLOG EVENTS IN '{middle}'")
        commits = [row[4] for row in ends if row[2] == "Xid" or row[5].startswith("COMMIT")]
        cut = commits[len(commits) // 2]
        variable = "gtid_binlog_pos" if is_mariadb(server) else "gtid_executed"
        gtids = "".join(server.query(f"SELECT @@GLOBAL.{variable}")[0][0].split())
        rows = server.query(
            "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables "
            f"WHERE table_schema IN ('{DATABASE}', 'served')"
        )
        tables = checksums(server, [row[0] for row in rows])
        return Archived([Path(shutil.copy(path, folder)) for path in files], cut, tables, gtids)


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Archived]:
    made: dict[str, Archived] = {}

    def of_flavor(flavor: str) -> Archived:
        if flavor not in made:
            made[flavor] = write_archive(flavor, tmp_path_factory.mktemp(flavor))
        return made[flavor]

    return of_flavor


class Replica:
    """A real server that replicates from a `ReplicationSource`."""

    def __init__(self, server: Server, by_gtid: bool) -> None:
        self.server = server
        self._by_gtid = by_gtid

    def follow(self, source: ReplicationSource, **options: str | int) -> None:
        """Replicate from a source, from where this replica is."""
        given = {"HOST": "127.0.0.1", "PORT": source.port, "USER": USER, "PASSWORD": PASSWORD}
        given |= {"HEARTBEAT_PERIOD": 0.2, "CONNECT_RETRY": 1}
        prefix = "MASTER" if is_mariadb(self.server) else "SOURCE"
        settings = {f"{prefix}_{name}": value for name, value in given.items()} | options
        if not is_mariadb(self.server):
            settings |= {"SOURCE_AUTO_POSITION": int(self._by_gtid), "GET_SOURCE_PUBLIC_KEY": 1}
        listed = ", ".join(
            f"{name} = {value}" if not isinstance(value, str) else f"{name} = '{value}'"
            for name, value in settings.items()
        )
        if is_mariadb(self.server):
            listed += f", MASTER_USE_GTID = {'slave_pos' if self._by_gtid else 'no'}"
        change = "CHANGE MASTER TO" if is_mariadb(self.server) else "CHANGE REPLICATION SOURCE TO"
        self.server.execute(f"{change} {listed}", f"START {self._word}")

    def stop(self) -> None:
        self.server.execute(f"STOP {self._word}")

    @property
    def _word(self) -> str:
        return "SLAVE" if is_mariadb(self.server) else "REPLICA"

    def status(self) -> dict[str, object]:
        with self.server.cursor() as cursor:
            cursor.execute(f"SHOW {self._word} STATUS")
            names = [
                column[0].replace("Master", "Source").replace("Slave", "Replica")
                for column in cursor.description
            ]
            return dict(zip(names, cursor.fetchone(), strict=True))

    def assert_sound(self) -> None:
        """Nothing has stopped it."""
        status = self.status()
        errors = {name: status[name] for name in ("Last_IO_Error", "Last_SQL_Error") if status[name]}
        assert not errors, errors

    def error(self) -> str:
        """What stops it from receiving."""
        return str(wait_until(lambda: self.status()["Last_IO_Error"], "error"))

    def catch_up(self, file: Path, position: int) -> None:
        """Wait until it has applied everything before a place."""

        def there() -> bool:
            status = self.status()
            reached = str(status["Relay_Source_Log_File"]), int(str(status["Exec_Source_Log_Pos"]))
            return reached >= (file.name, position)

        wait_until(there, f"place {file.name}:{position}", WAIT_SECONDS, self.assert_sound)

    def heartbeats(self) -> int:
        """How many it has received."""
        if is_mariadb(self.server):
            return int(self.server.query("SHOW STATUS LIKE 'Slave_received_heartbeats'")[0][1])
        table = "performance_schema.replication_connection_status"
        return int(self.server.query(f"SELECT COUNT_RECEIVED_HEARTBEATS FROM {table}")[0][0])


@pytest.fixture
def replica(request: pytest.FixtureRequest) -> Iterator[Replica]:
    flavor, by_gtid = request.param
    with own_server(flavor, server_id="22", skip_slave_start="ON", relay_log="relay") as server:
        yield Replica(server, by_gtid)


GTID_WAYS = [(flavor, True) for flavor in ("mysql-9.7", "mariadb-10.11", "mariadb-11.8")]
WAYS = [(flavor, by_gtid) for flavor, _ in GTID_WAYS for by_gtid in (False, True)]


def named(way: tuple[str, bool]) -> str:
    flavor, by_gtid = way
    return f"{flavor}-{'gtid' if by_gtid else 'position'}"


@pytest.mark.parametrize("replica", WAYS, ids=named, indirect=True)
def test_a_real_replica_ends_with_the_same_tables(
    replica: Replica, archived: Callable[[str], Archived], tmp_path: Path
) -> None:
    archive = archived(replica.server.flavor)
    half = archive.first_half(tmp_path)
    with ReplicationSource(half, user=USER, password=PASSWORD) as source:
        replica.follow(source)
        replica.catch_up(half[-1], archive.cut)
        before = replica.heartbeats()
        wait_until(lambda: replica.heartbeats() >= before + 3, "heartbeat", check=replica.assert_sound)
        replica.stop()
    assert checksums(replica.server, list(archive.tables)) != archive.tables
    with ReplicationSource(archive.files, user=USER, password=PASSWORD) as source:
        replica.follow(source)
        last = archive.files[-1]
        replica.catch_up(last, last.stat().st_size)
        before = replica.heartbeats()
        wait_until(lambda: replica.heartbeats() >= before + 3, "heartbeat", check=replica.assert_sound)
    assert checksums(replica.server, list(archive.tables)) == archive.tables


@pytest.mark.parametrize("replica", GTID_WAYS, ids=named, indirect=True)
def test_a_replica_that_lacks_more_than_there_is_left_is_refused(
    replica: Replica, archived: Callable[[str], Archived]
) -> None:
    archive = archived(replica.server.flavor)
    with ReplicationSource(archive.files[2:], user=USER, password=PASSWORD) as source:
        replica.follow(source)
        assert "purged" in replica.error()


@pytest.mark.parametrize(
    "replica", [way for way in GTID_WAYS if "mariadb" in way[0]], ids=named, indirect=True
)
def test_a_replica_that_is_ahead_of_the_archive_gets_an_error(
    replica: Replica, archived: Callable[[str], Archived], tmp_path: Path
) -> None:
    archive = archived(replica.server.flavor)
    replica.server.execute(f"SET GLOBAL gtid_slave_pos = '{archive.gtids}'")
    with ReplicationSource(archive.first_half(tmp_path), user=USER, password=PASSWORD) as source:
        replica.follow(source)
        assert f"start from GTID {archive.gtids}, which is not in the master's binlog" in replica.error()


@pytest.mark.parametrize(
    ("replica", "options"),
    [
        pytest.param(("mysql-9.7", True), {"SOURCE_SSL": 1}, id="mysql-9.7"),
        pytest.param(("mariadb-10.11", False), {"MASTER_SSL": 1}, id="mariadb-10.11"),
        # It verifies; a server that knows the password may show a certificate that no authority has signed.
        pytest.param(("mariadb-11.8", True), {"MASTER_SSL": 1}, id="mariadb-11.8"),
    ],
    indirect=["replica"],
)
def test_a_replica_can_insist_on_tls(
    replica: Replica, options: dict[str, str | int], archived: Callable[[str], Archived]
) -> None:
    assert_replicates_in_tls(replica, archived(replica.server.flavor), ServerTls.make(), options)


@pytest.mark.parametrize("replica", [("mysql-9.7", False)], ids=["mysql-9.7"], indirect=True)
def test_a_replica_can_verify_the_certificate(
    replica: Replica, archived: Callable[[str], Archived], tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    shown = authority.issue("archive", ["127.0.0.1"])
    options: dict[str, str | int] = {
        "SOURCE_SSL": 1,
        "SOURCE_SSL_CA": str(authority.ca),
        "SOURCE_SSL_VERIFY_SERVER_CERT": 1,
    }
    tls = ServerTls.load(shown.certificate, shown.key)
    assert_replicates_in_tls(replica, archived("mysql-9.7"), tls, options)


def assert_replicates_in_tls(
    replica: Replica, archive: Archived, tls: ServerTls, options: dict[str, str | int]
) -> None:
    handshakes: list[None] = []
    tls.context.sni_callback = lambda *_: handshakes.append(None)
    file = archive.files[0]
    with ReplicationSource([file], user=USER, password=PASSWORD, tls=tls) as source:
        replica.follow(source, **options)
        replica.catch_up(file, file.stat().st_size)
        replica.stop()
    assert handshakes
