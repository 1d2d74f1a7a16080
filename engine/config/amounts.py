"""Amounts with units, as users write them (`1.5GB`, `50k`, `30d`) and as commands show them."""

from __future__ import annotations

import re

from engine.errors import EngineError

_AMOUNT = re.compile(r"([0-9]{1,18}(?:\.[0-9]+)?)\s*([kKMGT]?)(B?)")
_FACTORS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_AGE = re.compile(r"([0-9]{1,18})\s*([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGER_UNITS = ((86400, "days"), (3600, "hours"), (60, "minutes"))


def parse_amount(text: str) -> tuple[int, bool] | None:
    """The number, and whether it is one of bytes; None if the text is not an amount."""
    match = _AMOUNT.fullmatch(text.strip())
    return None if match is None else (int(float(match[1]) * _FACTORS[match[2]]), bool(match[3]))


def age_seconds(text: str) -> int:
    """The seconds in an age such as `90m`, `36h` or `30d`. Raises `EngineError`."""
    parsed = _AGE.fullmatch(text.strip())
    if parsed is None:
        raise EngineError(f"{text} is not an age: give a number and s, m, h or d, such as 30d")
    return int(parsed[1]) * _SECONDS[parsed[2]]


def shown_bytes(count: float) -> str:
    """Such as `12.3 MB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def shown_seconds(seconds: float) -> str:
    """Such as `2.5 days`."""
    size, unit = next((each for each in _LONGER_UNITS if seconds >= 2 * each[0]), (1, "seconds"))
    return f"{seconds / size:.1f} {unit}"
