"""The user's privileges, as SHOW GRANTS lists them, compared with what streams and snapshots need.

Nothing is tried: a LOCK TABLES would stop others. Roles that are active for the session count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.dataclass import dataclass
from engine.doctor.finding import Finding, Level
from engine.doctor.tables import TableFacts
from engine.net.client.connection import Connection
from engine.net.client.explained import explained
from engine.net.client.source_facts import SourceFacts
from engine.output.sql_text import quoted_name
from engine.schema.changes import TableName

_NAME = r"(\*|`(?:[^`]|``)*`)"
_GRANT = re.compile(rf"GRANT (.+?) ON (?:TABLE )?{_NAME}\.{_NAME} TO ", re.DOTALL)
_PRIVILEGE = re.compile(r"([A-Z][A-Z_ ]*[A-Z])(?:\s*\([^)]*\))?(?:,\s*|\Z)")
_EVERYTHING = "ALL PRIVILEGES"
_XA_RECOVER_ADMIN_SINCE = (8, 0)


@dataclass(frozen=True, slots=True)
class Grant:
    """Privileges on everything, a database or a table."""

    privileges: frozenset[str]
    database: str | None
    """A pattern with `%` and `_`; None for all."""
    table: str | None
    """None for all."""

    def covers(self, database: str, table: str | None = None) -> bool:
        """Whether it is about this table, or without one about all tables of the database."""
        if self.database is not None and not _matches(self.database, database):
            return False
        return self.table is None or self.table == table


@dataclass(frozen=True, slots=True)
class Grants:
    """All that the user may do."""

    grants: tuple[Grant, ...]

    def everywhere(self, *privileges: str) -> bool:
        """Whether one of the privileges is granted on everything."""
        return any(grant.database is None and self._has(grant, privileges) for grant in self.grants)

    def on(self, privilege: str, database: str, table: str | None = None) -> bool:
        """Whether the privilege is granted on a table, or without one on all tables of the database."""
        return any(grant.covers(database, table) and self._has(grant, (privilege,)) for grant in self.grants)

    @staticmethod
    def _has(grant: Grant, privileges: tuple[str, ...]) -> bool:
        return _EVERYTHING in grant.privileges or not grant.privileges.isdisjoint(privileges)


def read_grants(connection: Connection) -> Grants:
    """The grants of the session's user and of its active roles. Raises `Refusal`."""
    with explained(connection):
        roles = "NONE"
        if connection.greeting.flavor == "mysql" and connection.greeting.version >= (8, 0):
            roles = connection.query("SELECT CURRENT_ROLE()")[0][0] or roles
        using = "" if roles == "NONE" else f" FOR CURRENT_USER() USING {roles}"
        rows = connection.query(f"SHOW GRANTS{using}")
    return Grants(tuple(grant for row in rows if (grant := parse_grant(row[0] or "")) is not None))


def parse_grant(text: str) -> Grant | None:
    """The grant of a line of SHOW GRANTS; None for a role or a proxy user."""
    found = _GRANT.match(text)
    if found is None:
        return None
    privileges, *level = found.groups()
    database, table = (None if part == "*" else part[1:-1].replace("``", "`") for part in level)
    return Grant(frozenset(_PRIVILEGE.findall(privileges)), database, table)


def check_privileges(
    grants: Grants, facts: SourceFacts, tables: TableFacts, user: str, *, prepares: bool
) -> Iterator[Finding]:
    """Findings about each privilege; `prepares`: the server has prepared XA transactions since its start."""
    yield _global(
        grants, user, ("REPLICATION SLAVE",), "required", "without it the server does not send its binlog"
    )
    yield _global(
        grants,
        user,
        ("REPLICATION CLIENT", "BINLOG MONITOR"),
        "advice",
        "snapshots, --start latest and the search for a time ask where the binlog ends",
    )
    select_level: Level = "required" if facts.lacks_names else "advice"
    why = "column names that the binlog lacks come from the server, and snapshots read the rows"
    yield _on_tables(grants, user, "SELECT", tables, tables.names, select_level, why)
    if tables.names:
        locked = tables.locked_by_snapshots(facts, prepares=prepares)
        why = "a snapshot locks these tables for an instant, and sets aside those that it cannot lock"
        yield _on_tables(grants, user, "LOCK TABLES", tables, locked, "advice", why)
    else:
        yield Finding("privilege LOCK TABLES", "not known: this user sees no table")
    if prepares and facts.flavor == "mysql" and facts.version_tuple >= _XA_RECOVER_ADMIN_SINCE:
        why = "the engine asks which XA transactions are prepared (docs/snapshots.md, docs/output.md)"
        yield _global(grants, user, ("XA_RECOVER_ADMIN",), "advice", why)


def _global(grants: Grants, user: str, names: tuple[str, ...], level: Level, why: str) -> Finding:
    what = f"privilege {names[0]}"
    if grants.everywhere(*names):
        return Finding(what, "granted")
    return Finding(what, "missing", level, "granted", why, f"GRANT {names[0]} ON *.* TO {user}")


def _on_tables(
    grants: Grants,
    user: str,
    privilege: str,
    tables: TableFacts,
    needed: tuple[TableName, ...],
    level: Level,
    why: str,
) -> Finding:
    what = f"privilege {privilege}"
    lacking = {name.database for name in needed if not grants.on(privilege, name.database, name.table)}
    if privilege == "SELECT":
        # A user sees only tables on which there is some privilege.
        lacking |= {database for database, table in tables.named if not grants.on(privilege, database, table)}
        if not needed and not tables.named and not grants.everywhere(privilege):
            return Finding(what, "missing", level, "granted", why, f"GRANT {privilege} ON *.* TO {user}")
    if not lacking:
        return Finding(what, "granted" if needed else "not needed")
    missing = ", ".join(sorted(lacking))
    remedy = "; ".join(
        f"GRANT {privilege} ON {quoted_name(database)}.* TO {user}" for database in sorted(lacking)
    )
    return Finding(what, f"missing on {missing}", level, "granted", why, remedy)


def _matches(pattern: str, database: str) -> bool:
    """Whether a database is meant by the name in a grant, where `%` and `_` are wildcards unless escaped."""
    parts = re.split(r"(\\.|%|_)", pattern)
    expression = "".join(
        {"%": ".*", "_": "."}.get(part, re.escape(part.removeprefix("\\"))) for part in parts
    )
    return re.fullmatch(expression, database, re.DOTALL) is not None
