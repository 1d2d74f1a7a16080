"""Errors of statements, raised as what they mean to the user.

The modules that send statements run them and read their results inside `explained`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.errors import EngineError
from engine.net.client.connection import Connection
from engine.net.client.refusals import UNKNOWN_ACCOUNT, Context, explain
from engine.net.protocol.packets import ServerError
from engine.net.protocol.wire import ProtocolError


@contextmanager
def explained(
    connection: Connection,
    *,
    file: str | None = None,
    position: int | None = None,
    server_id: int | None = None,
) -> Iterator[None]:
    """Raise a `ServerError` of the `with` block as the `Refusal` that explains it.

    An answer that has not the form that the block expects becomes a `ProtocolError`.
    """
    try:
        yield
    except ServerError as error:
        raise explain(error, context_of(connection, file, position, server_id)) from error
    except (ValueError, LookupError, TypeError) as error:
        raise ProtocolError(
            f"{connection.endpoint} answered a statement in a form that no server uses: check what listens "
            "there"
        ) from error


def context_of(
    connection: Connection,
    file: str | None = None,
    position: int | None = None,
    server_id: int | None = None,
) -> Context:
    """The context for `explain` of a connection that is logged in, which can be asked for its account."""
    where, user, account = str(connection.endpoint), connection.user, account_in_words(connection)
    return Context(where, user, file, position, server_id, logged_in=True, account=account)


def account_of(connection: Connection) -> str:
    """The account of the session, as GRANT takes it. Raises `ServerError`, outside of `explained`."""
    name = connection.query("SELECT CURRENT_USER()")[0][0] or ""
    user, _, host = name.rpartition("@")
    return f"{connection.quote(user)}@{connection.quote(host)}"


def account_in_words(connection: Connection) -> str:
    """The account for a message: how to find it if the server does not tell, after its error perhaps."""
    try:
        return account_of(connection)
    except (EngineError, LookupError):
        return UNKNOWN_ACCOUNT
