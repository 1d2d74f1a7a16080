"""Random settings of a session that decide what a DDL statement means."""

from __future__ import annotations

from random import Random

from tests.support.ddl_columns import Columns
from tests.support.ddl_text import Dialect, Session

_ENCODINGS = {"utf8mb4": "utf8", "latin1": "cp1252", "utf8": "utf8", "cp1251": "cp1251", "gbk": "gbk"}
"""Character set of the client → Python's name of it."""
_MODES = (
    *("", "", "", "", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"),
    *("ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "ANSI", "REAL_AS_FLOAT", "PAD_CHAR_TO_FULL_LENGTH", "IGNORE_SPACE"),
    *("STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE", "NO_UNSIGNED_SUBTRACTION", "TRADITIONAL"),
)


def new_session(rng: Random, dialect: Dialect, columns: Columns, database: str) -> tuple[Session, list[str]]:
    """A session, and the statements that begin it."""
    mode, charset = rng.choice(_MODES), rng.choice(list(_ENCODINGS))
    collation = " COLLATE utf8mb4_bin" if charset == "utf8mb4" and rng.random() < 0.3 else ""
    settings = [
        f"SET NAMES {charset}{collation}",
        f"SET sql_mode = '{mode}'",
        f"SET character_set_server = {columns.charset()}",
        "SET foreign_key_checks = 0",
        f"SET binlog_format = {rng.choice(('ROW',) * 38 + ('MIXED', 'STATEMENT'))}",
    ]
    if rng.random() < 0.3:
        settings.append(f"SET collation_server = {columns.collation()}")
    if dialect.mariadb or dialect.mysql_since(8):
        settings.append(f"SET explicit_defaults_for_timestamp = {rng.randrange(2)}")
    if dialect.mysql_since(8):
        settings.append(f"SET sql_generate_invisible_primary_key = {rng.choice(('ON',) + ('OFF',) * 7)}")
        collation = rng.choice(("utf8mb4_general_ci", "utf8mb4_0900_ai_ci"))
        settings.append(f"SET default_collation_for_utf8mb4 = {collation}")
    if dialect.mariadb_since(10, 3):
        settings.append("SET system_versioning_alter_history = KEEP")
    if dialect.mariadb_since(11, 3):
        pairs = rng.choice(("", "utf8mb4=utf8mb4_general_ci", "latin1=latin1_bin,utf8mb3=utf8mb3_bin"))
        settings.append(f"SET character_set_collations = '{pairs}'")
    settings.append("USE `" + database.replace("`", "``") + "`")
    quotes = "ANSI_QUOTES" in mode or mode == "ANSI"
    return Session(database, quotes, "NO_BACKSLASH" in mode, _ENCODINGS[charset]), settings
