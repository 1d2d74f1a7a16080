"""Explains a server's errors to users: one sentence with the cause and the remedy per error.

The sentences are in one table; the first row that matches an error's code and message applies. The row also
has whether a later attempt may succeed. Codes and texts: the servers' own error message files; 1236 is the
code of every failed dump.
"""

from __future__ import annotations

from engine.dataclass import dataclass
from engine.errors import EngineError
from engine.net.protocol.packets import ServerError

UNKNOWN_ACCOUNT = "the account that SELECT CURRENT_USER() shows for this user"
"""What a message says instead of an account that is not known."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the client was doing when the server returned the error."""

    where: str
    """The server, as `host:port` or as the path of its socket."""
    user: str
    file: str | None = None
    """With `position`: where the dump was to start, or how far it is."""
    position: int | None = None
    server_id: int | None = None
    """The server id of this replica, used for the dump."""
    logged_in: bool = False
    """Whether the login is complete, so that denied access means a missing privilege."""
    account: str = UNKNOWN_ACCOUNT
    """The account as GRANT takes it, whose host the user's name does not tell."""

    @property
    def position_text(self) -> str:
        """File and position for a message."""
        if self.file is None:
            return "the requested position"
        return f"{self.file} at position {self.position}" if self.position is not None else self.file


class Refusal(EngineError):
    """An explained server error. `retryable`: the same request may succeed later."""

    def __init__(self, sentence: str, code: int, retryable: bool = False) -> None:
        super().__init__(sentence)
        self.code = code
        self.retryable = retryable

    def __reduce__(self) -> tuple[type[Refusal], tuple[str, int, bool]]:
        return type(self), (str(self), self.code, self.retryable)


@dataclass(frozen=True, slots=True)
class _Explanation:
    code: int
    fragment: str
    """Part of the server's message in lower case; an empty one matches every message."""
    sentence: str
    retryable: bool = False
    logged_in: bool = False
    """Whether the row matches only after the login."""

    def fits(self, code: int, message: str, logged_in: bool) -> bool:
        return self.code == code and self.fragment in message and (logged_in or not self.logged_in)


_GRANT = "run GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {account} there"
_NO_PRIVILEGE = "user {user} lacks the privileges to read the binlog of {where} ({message}): " + _GRANT
_PURGED = (
    "{where} does not have {position} any more, its binlogs were purged or were reset (or it never existed): "
    "start from its earliest binlog (--start earliest) into an empty output folder, and increase the "
    "server's binlog retention"
)
_TAKEN = (
    "another replica has connected to {where} with this engine's server id {server_id} or UUID, so the "
    "server closed this connection: give each engine a different id (--server-id)"
)
_OTHER_HISTORY = (
    "{where} does not have transactions that the output folder has: it belongs to another topology, it lost "
    "them in a crash, or its binlogs and GTIDs were reset, so start again into an empty output folder"
)
_NO_SUCH_POSITION = (
    "{where} does not have {position}, its file is shorter: it is another server, it lost the end of its "
    "binlog in a crash, or its binlogs were reset, so start again into an empty output folder"
)
_NO_EVENT = (
    "{where} has no valid event at {position}: the file is damaged or no event starts at that position, so "
    "check with SHOW BINLOG EVENTS ({message})"
)
_ACCESS_DENIED = (
    "{where} refuses the login of user {user} ({message}): check user and password, from which hosts the "
    "user may connect, and whether the account requires TLS or a certificate"
)
_BINLOG_OFF = (
    "{where} writes no binlog: start the server with log_bin set, and binlog_format=ROW, then try again"
)
_SHUTDOWN = "{where} is shutting down: wait until it is back"
_KILLED = "{where} ended the connection because of a KILL statement ({message})"

_EXPLANATIONS = (
    _Explanation(1040, "", "{where} has too many connections: raise max_connections or close some", True),
    _Explanation(1044, "", _NO_PRIVILEGE),
    _Explanation(1045, "", _NO_PRIVILEGE, logged_in=True),
    _Explanation(1045, "", _ACCESS_DENIED),
    _Explanation(1698, "", _ACCESS_DENIED),
    _Explanation(1047, "wsrep", "{where} is not ready: its cluster has no quorum, or it is joining it", True),
    _Explanation(1049, "", "{where} has no such database ({message})"),
    _Explanation(1053, "", _SHUTDOWN, True),
    _Explanation(1079, "", _SHUTDOWN, True),
    _Explanation(1129, "", "{where} has blocked this machine after too many errors: run FLUSH HOSTS there"),
    _Explanation(
        1130, "", "{where} accepts no login from this host ({message}): create user {user} for this host"
    ),
    _Explanation(1203, "", "user {user} has too many connections on {where}: close some", True),
    _Explanation(1226, "", "user {user} has exceeded a resource limit on {where} ({message})", True),
    _Explanation(1227, "", _NO_PRIVILEGE),
    _Explanation(1236, "could not find first log file", _PURGED),
    _Explanation(1236, "purged", _PURGED),
    _Explanation(1236, "replicate the missing transactions", _PURGED),
    _Explanation(1236, "has more gtids than", _OTHER_HISTORY),
    _Explanation(1236, "requested to start from gtid", _OTHER_HISTORY),
    _Explanation(1236, "a slave with the same", _TAKEN),
    _Explanation(1236, "a replica with the same", _TAKEN),
    _Explanation(1236, "binary log is not open", _BINLOG_OFF),
    _Explanation(
        1236,
        "could not find next log",
        "{where} does not have the binlog that follows {position}: its binlogs were reset or files were "
        "removed, so start again into an empty output folder",
    ),
    _Explanation(
        1236,
        "i/o error reading log event",
        "{where} cannot read its binlog after {position} ({message}): its binlogs were reset or are damaged, "
        "so start again into an empty output folder",
    ),
    _Explanation(
        1236,
        "unknown error reading log event",
        "{where} cannot read its binlog at {position} ({message}): no event starts there, or its binlogs "
        "were reset or are damaged, so check with SHOW BINLOG EVENTS, or start again into an empty output "
        "folder",
    ),
    _Explanation(
        1236,
        "cannot replicate anonymous transaction",
        "{where} has transactions without GTIDs after {position}, which it does not send while gtid_mode is "
        "ON: set it to ON_PERMISSIVE until the engine has read them",
    ),
    _Explanation(1236, "position > file size", _NO_SUCH_POSITION),
    _Explanation(1236, "impossible position", _NO_SUCH_POSITION),
    _Explanation(1236, "bogus data in log event", _NO_EVENT),
    _Explanation(1236, "truncated in the middle of event", _NO_EVENT),
    _Explanation(
        1236,
        "log event entry exceeded max_allowed_packet",
        "{where} has no event at {position}, or one larger than its max_allowed_packet: increase it, or "
        "check the position with SHOW BINLOG EVENTS",
    ),
    _Explanation(
        1236,
        "cannot handle replication events with the checksum",
        "{where} writes binlog checksums and did not recognize that this replica supports them ({message})",
    ),
    _Explanation(1236, "", "{where} ended the dump at {position}: {message}"),
    _Explanation(1251, "", "{where} requests an authentication method that is not supported ({message})"),
    _Explanation(1373, "", _PURGED),
    _Explanation(1381, "", _BINLOG_OFF),
    _Explanation(1820, "", "the password of user {user} on {where} has expired: set a new one"),
    _Explanation(1862, "", "the password of user {user} on {where} has expired: set a new one"),
    _Explanation(3032, "", "{where} is offline for users without CONNECTION_ADMIN (offline_mode)", True),
    _Explanation(3118, "", "the account of user {user} on {where} is locked: unlock it"),
    _Explanation(4151, "", "the account of user {user} on {where} is locked: unlock it"),
    _Explanation(
        3159, "", "{where} accepts only encrypted connections (require_secure_transport): connect with TLS"
    ),
    _Explanation(
        1275, "", "the password of user {user} on {where} has the format of MySQL before 4.1: set a new one"
    ),
    _Explanation(4052, "", _TAKEN),
    _Explanation(1317, "", _KILLED, True),
    _Explanation(1927, "", _KILLED, True),
    _Explanation(3169, "", _KILLED, True),
)

_UNKNOWN = _Explanation(0, "", "{where} answered with error {code}: {message}")


def explain(error: ServerError, context: Context) -> Refusal:
    """The sentence for a server's error; the server's own message if no row matches."""
    message = " ".join(error.message.split())
    row = next((r for r in _EXPLANATIONS if r.fits(error.code, message.lower(), context.logged_in)), _UNKNOWN)
    sentence = row.sentence.format(
        where=context.where,
        user=f"'{context.user}'",
        account=context.account,
        position=context.position_text,
        server_id=context.server_id,
        message=message,
        code=error.code,
    )
    return Refusal(sentence, error.code, row.retryable)
