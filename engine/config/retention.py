"""How much of an output is kept, as users write it: an age such as `30d`, or a size such as `500GB`."""

from __future__ import annotations

from engine.config.amounts import age_seconds, parse_amount
from engine.dataclass import dataclass
from engine.errors import EngineError


@dataclass(frozen=True, slots=True)
class Retention:
    """What may be removed: all that is older, or as much as is above a size; one of the two is None."""

    seconds: float | None = None
    bytes: int | None = None
    """Size of the data files."""

    @classmethod
    def parse(cls, text: str) -> Retention:
        """The retention of `90m`, `36h`, `30d`, `800MB` or `1.5TB`. Raises `EngineError`."""
        match parse_amount(text):
            case (size, True):
                return cls(bytes=size)
        try:
            return cls(seconds=age_seconds(text))
        except EngineError:
            raise EngineError(
                f"{text} is neither an age nor a size: give a number and s, m, h or d (30d), or kB, MB, GB "
                "or TB (500GB)"
            ) from None
