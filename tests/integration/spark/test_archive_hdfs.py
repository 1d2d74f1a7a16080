"""An archive in a real HDFS: a large file of many blocks in parts, and a compressed one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.archive.files import ArchiveError, find_files
from engine.errors import EngineError
from tests.conftest import skip_or_fail
from tests.servers import HdfsServer, UnavailableError
from tests.support.archive_job import LOCAL_CLUSTER, run_archive_job
from tests.support.numbered_archive import TABLE, check_rows, read_archive, write_archive

FILES = int(os.environ.get("BINLOG_ENGINE_ARCHIVE_FILES", "0"))
pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not FILES, reason="takes long: BINLOG_ENGINE_ARCHIVE_FILES=64 runs it"),
]


@pytest.fixture(scope="module")
def hdfs() -> Iterator[HdfsServer]:
    try:
        with HdfsServer() as running:
            yield running
    except UnavailableError as error:
        skip_or_fail(error)


@pytest.fixture(scope="module")
def archive(hdfs: HdfsServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of the files."""
    folder = tmp_path_factory.mktemp("archive") / "db1"
    folder.mkdir()
    write_archive(folder)
    hdfs.make_folder("/backup")
    hdfs.put(folder, "/backup")
    return f"{hdfs.url}/backup/db1/binlog.*"


def test_files_in_hdfs_are_read_in_parts(archive: str) -> None:
    check_rows(*read_archive(archive))


def test_what_is_not_there_is_named(hdfs: HdfsServer, archive: str) -> None:
    with pytest.raises(ArchiveError, match=r"no binlog file matches .*/gone cannot be listed"):
        find_files(f"{hdfs.url}/gone/binlog.*")


def test_what_a_user_may_not_read_is_named(hdfs: HdfsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    hdfs.make_folder("/closed", "700")
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    # The user belongs to the connection: a URL of its own.
    url = hdfs.url.replace("127.0.0.1", "localhost")
    with pytest.raises(ArchiveError, match=r"/closed cannot be listed \(.*Permission denied: user=somebody"):
        find_files(f"{url}/closed/binlog.*")


@pytest.mark.parametrize("master", ["local[2]", LOCAL_CLUSTER])
def test_spark_reads_files_in_hdfs(archive: str, master: str, tmp_path: Path) -> None:
    found = run_archive_job(master, archive, TABLE, tmp_path, partSize="1")
    check_rows(found["a"].to_pylist(), found["_seq"].to_pylist())


def test_a_file_whose_nodes_are_gone_is_named(hdfs: HdfsServer, archive: str) -> None:
    """The last test of the module, since it ends the only DataNode."""
    hdfs.kill_data_node()
    with pytest.raises(EngineError, match=r"/backup/db1/binlog.000001 cannot be read.*All DataNodes failed"):
        read_archive(archive)
