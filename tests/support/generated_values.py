"""Random values for a column type, as the SQL that stores them: what other tests lack between the limits.

Every value is valid for its type, so that strict servers take them too. The same seed gives the same values.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import partial
from random import Random

from tests.support.charset_characters import unique_characters

CHARACTERS = {"utf8mb4": "aZ09 ~'\"\\%_äßéЖ漢字カ…€\u200b\n\t\0🎉𐍈"}
"""Where there are more than `unique_characters` has."""
_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64}


def generated(declared: str, random: Random, count: int) -> list[str]:
    """`count` values of a column type as SQL; none for types that have nothing to vary."""
    (base,) = re.findall(r"^\w+", declared)
    numbers = [int(number) for number in re.findall(r"\d+", declared.partition("(")[2].partition(")")[0])]
    make = _MAKERS.get(base)
    if make is None:
        return []
    return [make(declared, numbers, random) for _ in range(count)]


def literal(text: str) -> str:
    """Text as a literal of SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0")
    return f"'{escaped}'"


def _integer(declared: str, numbers: list[int], random: Random) -> str:
    (base,) = re.findall(r"^\w+", declared)
    bits = _INTEGER_BITS[base]
    magnitude = random.getrandbits(random.randint(1, bits))
    return str(
        magnitude
        if "UNSIGNED" in declared
        else magnitude - (1 << bits - 1)
        if magnitude >> bits - 1
        else magnitude
    )


def _bit(declared: str, numbers: list[int], random: Random) -> str:
    return str(random.getrandbits(random.randint(1, numbers[0])))


def _decimal(declared: str, numbers: list[int], random: Random) -> str:
    precision, scale = numbers
    whole = "".join(random.choices("0123456789", k=random.randint(0, precision - scale)))
    part = "".join(random.choices("0123456789", k=random.randint(0, scale)))
    sign = "" if "UNSIGNED" in declared else random.choice(["", "-"])
    return f"{sign}{whole or '0'}.{part or '0'}"


def _double(declared: str, numbers: list[int], random: Random) -> str:
    while True:
        (value,) = struct.unpack("<d", random.randbytes(8))
        if value == value and 1e-300 < abs(value) < 1e308:
            return repr(value)


def _float(declared: str, numbers: list[int], random: Random) -> str:
    while True:
        (value,) = struct.unpack("<f", random.randbytes(4))
        if value == value and 1e-37 < abs(value) < 1e38:
            return repr(value)


def _day(random: Random) -> str:
    return f"{random.randint(1000, 9999)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"


def _clock(random: Random, numbers: list[int], hours: int = 23) -> str:
    time = f"{random.randint(0, hours):02}:{random.randint(0, 59):02}:{random.randint(0, 59):02}"
    digits = numbers[0] if numbers else 0
    return f"{time}.{random.randrange(10**digits):0{digits}}" if digits else time


def _date(declared: str, numbers: list[int], random: Random) -> str:
    return f"'{_day(random)}'"


def _datetime(declared: str, numbers: list[int], random: Random) -> str:
    return f"'{_day(random)} {_clock(random, numbers)}'"


def _timestamp(declared: str, numbers: list[int], random: Random) -> str:
    day = f"{random.randint(1971, 2037)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
    return f"'{day} {_clock(random, numbers)}'"


def _time(declared: str, numbers: list[int], random: Random) -> str:
    return f"'{random.choice(['', '-'])}{_clock(random, numbers, hours=837)}'"


def _year(declared: str, numbers: list[int], random: Random) -> str:
    return str(random.randint(1901, 2155))


def _text(declared: str, numbers: list[int], random: Random) -> str:
    charset = re.search(r"CHARACTER SET (\w+)", declared)
    name = charset[1] if charset else "utf8mb4"
    alphabet = CHARACTERS.get(name) or unique_characters(name)
    longest = min(numbers[0] if numbers else 60, 300)
    text = "".join(random.choices(alphabet, k=random.randint(0, longest)))
    # Servers disagree with themselves on how to compare and trim a CHAR that ends like this.
    return literal(text.rstrip(" \0\t\n") if declared.startswith("CHAR") else text)


def _bytes(declared: str, numbers: list[int], random: Random) -> str:
    value = random.randbytes(random.randint(0, min(numbers[0] if numbers else 300, 300)))
    return f"x'{value.hex()}'"


def _set(declared: str, numbers: list[int], random: Random) -> str:
    return str(random.getrandbits(declared.count(",") + 1))


def _number(random: Random) -> object:
    return random.choice(
        [
            random.getrandbits(random.randint(1, 63)),
            -random.getrandbits(31),
            random.uniform(-1e6, 1e6),
            2**64 - 1,
        ]
    )


def _json_value(random: Random, depth: int) -> str:
    kind = random.randrange(5 if depth else 3)
    if kind == 0:
        return str(_number(random))
    if kind == 1:
        return random.choice(["true", "false", "null"])
    if kind == 2:
        return _json_string(random)
    values = [_json_value(random, depth - 1) for _ in range(random.randint(0, 4))]
    if kind == 3:
        return f"[{', '.join(values)}]"
    members = ", ".join(f"{_json_string(random)}: {value}" for value in values)
    return f"{{{members}}}"


def _json_string(random: Random) -> str:
    text = "".join(random.choices('aZ 9ä漢🎉"\\\n', k=random.randint(0, 12)))
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(plain, escaped)
    return f'"{text}"'


def _json(declared: str, numbers: list[int], random: Random) -> str:
    return literal(_json_value(random, 4))


def _point(declared: str, numbers: list[int], random: Random) -> str:
    return f"ST_GeomFromText('POINT({random.uniform(-1e9, 1e9)!r} {random.uniform(-1e9, 1e9)!r})')"


def _uuid(declared: str, numbers: list[int], random: Random) -> str:
    # The versions that MariaDB stores with their parts in another order, and those that it does not.
    digits = random.randbytes(16).hex()
    digits = f"{digits[:12]}{random.choice('1467')}{digits[13:16]}{random.choice('89ab')}{digits[17:]}"
    return f"'{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}'"


def _inet6(declared: str, numbers: list[int], random: Random) -> str:
    return "'{}'".format(":".join(random.choice(["0", f"{random.getrandbits(16):x}"]) for _ in range(8)))


def _inet4(declared: str, numbers: list[int], random: Random) -> str:
    return "'{}'".format(".".join(str(random.getrandbits(8)) for _ in range(4)))


def _vector(declared: str, numbers: list[int], random: Random, function: str = "VEC_FromText") -> str:
    values = ",".join(f"{random.uniform(-1000, 1000):.4f}" for _ in range(numbers[0]))
    return f"{function}('[{values}]')"


_MAKERS: dict[str, Callable[[str, list[int], Random], str]] = {
    **dict.fromkeys(_INTEGER_BITS, _integer),
    "BIT": _bit,
    "DECIMAL": _decimal,
    "DOUBLE": _double,
    "FLOAT": _float,
    "DATE": _date,
    "DATETIME": _datetime,
    "TIMESTAMP": _timestamp,
    "TIME": _time,
    "YEAR": _year,
    **dict.fromkeys(("CHAR", "VARCHAR", "TEXT", "TINYTEXT", "MEDIUMTEXT", "LONGTEXT"), _text),
    **dict.fromkeys(("BINARY", "VARBINARY", "BLOB", "MEDIUMBLOB", "LONGBLOB"), _bytes),
    "SET": _set,
    "JSON": _json,
    "POINT": _point,
    "UUID": _uuid,
    "INET6": _inet6,
    "INET4": _inet4,
    "VECTOR": _vector,
}
"""By the first word of the type."""

vector_of_mysql = partial(_vector, function="STRING_TO_VECTOR")
