"""Whole runs from a real server into a bucket, read back in all ways; two engines at once; bad input."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from engine.cli import main
from engine.commands.status import status
from engine.output.commit_log import CommitLog
from engine.output.consumers import consumers
from engine.output.reader import Changes
from engine.output.verification import verify
from tests.servers import ObjectServer, Server
from tests.support.engine_run import COMMAND, assert_one_sentence, end_of_binlog, run_command
from tests.support.load import Load, create_table, replayed, selected
from tests.support.object_output import PATIENCE_SECONDS, ObjectOutput

pytestmark = [pytest.mark.server, pytest.mark.slow]

POOR = "poor"
"""A user without any permission."""
SAMPLE = "engine/binlog/samples/shop-binlog.000001"


def start_of(server: Server) -> str:
    file, position = end_of_binlog(server)
    return f"{file}:{position}"


@pytest.mark.spark
def test_a_run_into_a_bucket_is_read_by_every_reader(
    mysql97: Server, output: ObjectOutput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark's processes know only segments of a thousand commits.
    monkeypatch.undo()
    for name, value in output.server.environment().items():
        monkeypatch.setenv(name, value)
    output = replace(output, command=(COMMAND,))
    start = start_of(mysql97)
    create_table(mysql97, "objects")
    with Load(mysql97, "objects") as writing, output.follow(mysql97, start=start) as engine:
        engine.wait_for_commits(5)
        writing.stop()
        engine.catch_up(mysql97)
        assert engine.stop().status == 0
    output.assert_sound()
    assert replayed(output.url, "objects") == selected(mysql97, "objects")
    log = CommitLog(output.url)
    seen = status(output.url)
    assert seen.commit == log.latest_version()
    assert seen.writer is None
    assert verify(output.url).problems == []
    # A stream, whose tasks read the bucket on executors, with a consumer in the store.
    stream = [
        sys.executable,
        "-m",
        "tests.support.copy_stream",
        output.url,
        "objects.accounts",
        str(tmp_path),
    ]
    done = subprocess.run(stream, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
    copied = pq.read_table(tmp_path / "copy").sort_by("_seq")
    changes = Changes(output.url).read("objects", "accounts").select(copied.column_names)
    assert copied.to_pylist() == changes.to_pylist()
    assert [consumer.name for consumer in consumers(log.out)] == ["copy"]


def test_rows_of_a_prepared_transaction_are_undone(mysql97: Server, output: ObjectOutput) -> None:
    """They are read from the bucket, by a run that has claimed the output since."""
    start = start_of(mysql97)
    create_table(mysql97, "objects")
    mysql97.execute("INSERT INTO objects.accounts VALUES (1, 10, 'a'), (2, 20, NULL)")
    changes = (
        "DELETE FROM objects.accounts WHERE id = 1",
        "UPDATE objects.accounts SET balance = 0, owner = 'x'",
    )
    mysql97.execute("XA START 'a'", *changes, "XA END 'a'", "XA PREPARE 'a'")
    output.drain(mysql97, start=start)
    mysql97.execute("XA ROLLBACK 'a'", "INSERT INTO objects.accounts VALUES (3, 30, 'c')")
    output.drain(mysql97)
    output.assert_sound()
    assert replayed(output.url, "objects") == selected(mysql97, "objects")
    assert verify(output.url).problems == []


def test_statements_are_made_of_an_output_in_a_bucket(
    output: ObjectOutput, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scripts = []
    for place in (output.url, str(tmp_path / "changes")):
        ended = run_command("decode", SAMPLE, "--out", place, "--temporal", "text")
        assert ended.status == 0, ended.stderr
        capsys.readouterr()
        assert main(["sql", place]) == 0
        scripts.append(capsys.readouterr().out)
    assert scripts[0] == scripts[1]
    assert "INSERT INTO" in scripts[0]
    assert main(["sql", output.url, SAMPLE]) == 1
    assert f"{output.url} is not a binlog file: give one output, or files" in capsys.readouterr().err


def test_credentials_of_a_profile(
    output: ObjectOutput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = output.server
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    (tmp_path / "credentials").write_text(
        f"[lake]\naws_access_key_id = {server.access_key}\naws_secret_access_key = {server.secret_key}\n"
    )
    (tmp_path / "config").write_text("[profile lake]\nregion = us-east-1\n")
    monkeypatch.setenv("AWS_PROFILE", "lake")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    ended = run_command("decode", SAMPLE, "--out", output.url)
    assert ended.status == 0, ended.stderr
    assert main(["status", output.url]) == 0
    assert server.secret_key not in ended.stderr + capsys.readouterr().out


def test_a_snapshot_that_is_asked_for_through_the_bucket_is_taken(
    mysql97: Server, output: ObjectOutput
) -> None:
    create_table(mysql97, "asked")
    with Load(mysql97, "asked") as writing:
        writing.wait_for(20)
    output.drain(mysql97, start="latest")
    asked = run_command("snapshot", output.url, "--tables", "asked.accounts")
    assert "otherwise the next run does" in asked.stdout, asked
    output.drain(mysql97)
    rows = Changes(output.url).read("asked", "accounts").to_pylist()
    taken = {row["id"]: (row["balance"], row["owner"]) for row in rows if row["_change_type"] == "snapshot"}
    assert taken == selected(mysql97, "asked")


def test_of_two_engines_at_once_the_later_one_goes_on(
    mysql97: Server, output: ObjectOutput, tmp_path: Path
) -> None:
    """The other one has another spool, as on another machine, so no lock of a file keeps it away."""
    start = start_of(mysql97)
    create_table(mysql97, "twice")
    other = ObjectOutput(output.server, output.url, tmp_path / "other")
    with Load(mysql97, "twice") as writing, output.follow(mysql97, start=start) as first:
        first.wait_for_commits(5)
        with other.follow(mysql97, server_id=99) as second:
            ended = first.wait()
            second.wait_for_commits(15)
            writing.stop()
            second.catch_up(mysql97)
            assert second.stop().status == 0
    assert ended.status == 1
    assert ended.sentence == (
        f"another binlog-engine has taken over the output {output.url}: this one has stopped, and what it "
        "committed is kept; run one engine for each output"
    )
    assert_one_sentence(ended)
    assert replayed(output.url, "twice") == selected(mysql97, "twice")
    latest = CommitLog(output.url).latest()
    assert latest is not None and latest.epoch == 2
    other.assert_sound()


@pytest.mark.parametrize(
    ("url", "environment", "sentence"),
    [
        ("s3://not-there/changes", {}, "there is no bucket `not-there`; create it"),
        ("", {"AWS_SECRET_ACCESS_KEY": "wrong"}, "the store refuses the secret key; set the store's"),
        ("", {"AWS_ACCESS_KEY_ID": "stranger"}, "the store does not know the access key; set the store's"),
        ("", {"AWS_ACCESS_KEY_ID": POOR}, "these credentials may not do that; permit reading, listing"),
        ("", {"AWS_ALLOW_HTTP": "false"}, "its endpoint is an http:// address; give an https:// one"),
        ("s3://user:pass-word@lake/x", {}, "the s3 URL of the output contains credentials: give them in"),
        ("ftp://lake/x", {}, "an output cannot be at ftp://: give a folder, or a URL that begins with s3://"),
        ("s3://lake/a/../b", {}, "s3://lake/a/../b is not a place for an output: give s3://BUCKET/PREFIX"),
    ],
)
def test_bad_input_gets_one_sentence_at_once(
    object_server: ObjectServer,
    output: ObjectOutput,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    url: str,
    environment: dict[str, str],
    sentence: str,
) -> None:
    if environment.get("AWS_ACCESS_KEY_ID") == POOR:
        object_server.create_user(POOR, object_server.secret_key)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(["status", url or f"{output.url}/{abs(hash(sentence))}"]) == 1
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    for secret in (object_server.secret_key, "pass-word", "wrong"):
        assert secret not in said


def test_a_run_into_a_bucket_that_is_not_there_ends_at_once(output: ObjectOutput) -> None:
    ended = run_command("decode", SAMPLE, "--out", "s3://not-there/changes")
    assert ended.status == 1
    assert ended.sentence.startswith("listing s3://not-there/changes failed: there is no bucket `not-there`")
    assert_one_sentence(ended)
