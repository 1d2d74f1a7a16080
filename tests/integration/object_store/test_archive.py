"""An archive in an object store: a large file in parts, and a compressed one."""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from pathlib import Path

import pytest

from engine.archive.definitions import starting_definitions
from engine.archive.files import ArchiveError, find_files
from engine.config.output_place import output_place
from tests.servers import ObjectServer
from tests.support.archive_job import LOCAL_CLUSTER, run_archive_job
from tests.support.numbered_archive import TABLE, check_rows, read_archive, write_archive
from tests.support.output import Output
from tests.support.schema_changes import ORDERS, defined, learned

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]
FILES = int(os.environ.get("BINLOG_ENGINE_ARCHIVE_FILES", "0"))


@pytest.fixture
def archive(object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of the files."""
    url = object_server.create_bucket(f"backup-{secrets.token_hex(4)}")
    folder = object_server.bucket_folder(url) / "db1"
    folder.mkdir()
    write_archive(folder)
    for name, value in object_server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", object_server.endpoint)
    return f"{url}/db1/binlog.*"


def test_files_in_a_bucket_are_read_in_parts(archive: str) -> None:
    check_rows(*read_archive(archive))


def test_definitions_of_an_output_in_a_bucket(archive: str, object_server: ObjectServer) -> None:
    bucket = archive.removesuffix("/db1/binlog.*")
    output = Output(object_server.bucket_folder(bucket) / "changes")
    output.change_schema(learned(defined(ORDERS, 1, "id", "price")))
    output.commit({})
    (first, *_) = find_files(archive)
    later = replace(first, name="binlog.000009")
    model, _ = starting_definitions(output_place(f"{bucket}/changes"), later, "mysql")
    found = model.find(ORDERS.database, ORDERS.table)
    assert found is not None
    assert [column.name for column in found.columns] == ["id", "price"]
    with pytest.raises(ArchiveError, match=f"`schemas` is {bucket}/nothing, which has no commits"):
        starting_definitions(output_place(f"{bucket}/nothing"), later, "mysql")


@pytest.mark.spark
@pytest.mark.skipif(not FILES, reason="takes long: BINLOG_ENGINE_ARCHIVE_FILES=64 runs it")
@pytest.mark.parametrize("master", ["local[2]", LOCAL_CLUSTER])
def test_spark_reads_files_in_a_bucket(archive: str, master: str, tmp_path: Path) -> None:
    found = run_archive_job(master, archive, TABLE, tmp_path, partSize="1")
    check_rows(found["a"].to_pylist(), found["_seq"].to_pylist())
