"""Members of ENUM and SET in character sets: which characters are lost, and what CONVERT TO makes of them.

Servers store members in the column's character set. CONVERT TO CHARACTER SET keeps their bytes, so that
members beyond ASCII may become other texts. What becomes of bytes that are not valid in the new character set
depends on the server.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.binlog.collations import BINARY, UTF8MB3
from engine.binlog.texts import decode_charset, encode_text, without_supplementary
from engine.errors import EngineError

WIDE = frozenset({"ucs2", "utf16", "utf16le", "utf32", "swe7"})
"""Character sets in which ASCII has other bytes."""
_FOREIGN_BACKSLASH = frozenset({"sjis", "cp932"})
"""Character sets in which a server stores a backslash as another character."""
_LOST_BY_UTF8MB3 = "?" * 4
"""What servers store of a character outside the Basic Multilingual Plane that a client with utf8mb3 sent: `?`
for each byte."""


class MemberError(EngineError):
    """What a server makes of the members is not known."""


def stored_members(members: Iterable[str], charset: str, client: str | None) -> tuple[str, ...]:
    """The members as a column of the character set has them, `?` for others. Raises `MemberError`.

    `client`: the character set of the statement.
    """
    if client == UTF8MB3:
        members = (without_supplementary(member, _LOST_BY_UTF8MB3) for member in members)
    return tuple(_stored(member, charset) for member in members)


def converted_members(members: Iterable[str], old: str, new: str) -> tuple[str, ...]:
    """The members after CONVERT TO CHARACTER SET. Raises `MemberError`."""
    return tuple(_converted(member, old, new) for member in members)


def _stored(member: str, charset: str) -> str:
    if "\0" in member:
        # It ends the member for MySQL before 8.0.
        raise MemberError(f"the member {member!r}")
    if member.isascii() and charset != "swe7":
        return member
    if charset == BINARY:
        raise MemberError("it has members of ENUM or SET that are not text")
    text = decode_charset(encode_text(member, charset), charset)
    if text is None:
        raise MemberError(f"the member {member!r} in the character set {charset}")
    return text


def _converted(member: str, old: str, new: str) -> str:
    if old == new:
        return member
    value = encode_text(member, old)
    text = None if new == "ascii" and not value.isascii() else decode_charset(value, new)
    # A byte of zero, which ends a name for some servers, or a space that they may cut off.
    if text is None or "\0" in text or text.endswith(" ") or (old in _FOREIGN_BACKSLASH and "\\" in member):
        raise MemberError(f"what becomes of the member {member!r} from {old} in {new}")
    return text
