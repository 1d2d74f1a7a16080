"""Limits of rows or bytes in a second, as users write them."""

from __future__ import annotations

from engine.config.amounts import parse_amount
from engine.dataclass import dataclass
from engine.errors import EngineError


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most so much in a second; None for no limit."""

    rows: int | None = None
    bytes: int | None = None

    @classmethod
    def parse(cls, text: str | None) -> RateLimit:
        """The limit of `50000` (rows), `50k`, `20MB` or `1.5GB`. Raises `EngineError`."""
        if text is None:
            return cls()
        number, is_bytes = parse_amount(text) or (0, False)
        if not number:
            raise EngineError(
                f"--snapshot-rate {text} is not a rate: give rows a second (50000) or bytes (20MB)"
            )
        return cls(bytes=number) if is_bytes else cls(rows=number)
