"""A server's refusals become one sentence that names the server, the position, and what to do."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from engine.net.client.refusals import Context, explain
from engine.net.protocol.packets import ServerError

LOGIN = Context("db1:3306", "repl")
DUMP = Context("db1:3306", "repl", "binlog.000007", 1234, 4711, logged_in=True)


@pytest.mark.parametrize(
    ("code", "message", "context", "says", "retryable"),
    [
        (
            1045,
            "Access denied for user 'repl'@'h' (using password: YES)",
            LOGIN,
            "check user and password",
            False,
        ),
        (
            1045,
            "Access denied for user 'repl'@'h' (using password: YES)",
            DUMP,
            "GRANT REPLICATION SLAVE",
            False,
        ),
        (
            1227,
            "Access denied; you need (at least one of) the SUPER privilege",
            DUMP,
            "GRANT REPLICATION",
            False,
        ),
        (
            1236,
            "Could not find first log file name in binary log index file",
            DUMP,
            "--start earliest",
            False,
        ),
        (
            1236,
            "Cannot replicate because the source purged required binary logs.",
            DUMP,
            "does not have binlog.000007 at position 1234 any more",
            False,
        ),
        (
            1236,
            "A replica with the same server_uuid/server_id as this replica has connected to the source",
            DUMP,
            "server id 4711",
            False,
        ),
        (
            1236,
            "Client requested source to start replication from position > file size",
            DUMP,
            "reset",
            False,
        ),
        (
            1236,
            "unknown error reading log event on the master; the first event '' at 4",
            DUMP,
            "no event starts there, or its binlogs were reset",
            False,
        ),
        (1236, "Binary log is not open", DUMP, "writes no binlog", False),
        (
            1236,
            "something\nnew",
            DUMP,
            "ended the dump at binlog.000007 at position 1234: something new",
            False,
        ),
        (1040, "Too many connections", LOGIN, "max_connections", True),
        (1053, "Server shutdown in progress", DUMP, "shutting down", True),
        (1047, "WSREP has not yet prepared node for application use", DUMP, "is not ready", True),
        (1047, "Unknown command", DUMP, "answered with error 1047: Unknown command", False),
        (3032, "The server is currently in offline mode", LOGIN, "offline_mode", True),
        (9999, "never heard {of}", DUMP, "db1:3306 answered with error 9999: never heard {of}", False),
    ],
)
def test_sentences(code: int, message: str, context: Context, says: str, retryable: bool) -> None:
    refusal = explain(ServerError(code, "HY000", message), context)
    assert says in str(refusal)
    assert "db1:3306" in str(refusal)
    assert "\n" not in str(refusal)
    assert (refusal.code, refusal.retryable) == (code, retryable)


@pytest.mark.parametrize(
    ("context", "account"),
    [
        (DUMP, "the account that SELECT CURRENT_USER() shows for this user"),
        (replace(DUMP, account="'repl'@'10.0.0.%'"), "'repl'@'10.0.0.%'"),
    ],
)
def test_missing_privileges_are_granted_to_an_account(context: Context, account: str) -> None:
    refusal = explain(ServerError(1227, "42000", "Access denied; you need …"), context)
    assert str(refusal).endswith(
        f": run GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {account} there"
    )


def test_a_refusal_survives_a_process_border() -> None:
    refusal = explain(ServerError(1040, None, "Too many connections"), LOGIN)
    again = pickle.loads(pickle.dumps(refusal))
    assert (str(again), again.code, again.retryable) == (str(refusal), 1040, True)
