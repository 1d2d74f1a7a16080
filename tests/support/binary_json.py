"""MySQL's binary JSON, encoded from Python values; and hypothesis strategies for documents."""

from __future__ import annotations

import json
import struct
from typing import Any

from hypothesis import strategies as st

from engine.binlog.double_text import double_text
from engine.decode.columns.json.layout import INLINED


def variable_length(size: int) -> bytes:
    encoded = bytearray()
    while size > 0x7F:
        encoded.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*encoded, size])


def encode_value(value: Any) -> tuple[int, bytes]:
    """Type and content of a value, as `json_binary.cc` serializes it."""
    if value is None or isinstance(value, bool):
        return 4, bytes([{None: 0, True: 1, False: 2}[value]])
    if isinstance(value, int):
        for kind, form, low, high in (
            (5, "<h", -(2**15), 2**15),
            (6, "<H", 0, 2**16),
            (7, "<i", -(2**31), 2**31),
            (8, "<I", 0, 2**32),
            (9, "<q", -(2**63), 2**63),
            (10, "<Q", 0, 2**64),
        ):
            if low <= value < high:
                return kind, struct.pack(form, value)
    if isinstance(value, float):
        return 11, struct.pack("<d", value)
    if isinstance(value, str):
        return 12, variable_length(len(value.encode())) + value.encode()
    if isinstance(value, tuple):
        field_type, content = value
        return 15, bytes([field_type]) + variable_length(len(content)) + content
    is_object = isinstance(value, dict)
    for large in (False, True):
        content = container(value, large)
        if content is not None:
            return large + 2 * (not is_object), content
    raise AssertionError(value)


def container(value: dict[str, Any] | list[Any], large: bool) -> bytes | None:
    width, form = (4, "<I") if large else (2, "<H")
    values = [encode_value(item) for item in (value.values() if isinstance(value, dict) else value)]
    keys = [key.encode() for key in value] if isinstance(value, dict) else []
    at = 2 * width + len(keys) * (width + 2) + len(values) * (1 + width)
    key_table, value_table, contents = b"", b"", b"".join(keys)
    try:
        for key in keys:
            key_table += struct.pack(form, at) + struct.pack("<H", len(key))
            at += len(key)
        for kind, content in values:
            if kind in INLINED[large]:
                value_table += bytes([kind]) + content.ljust(width, b"\0")
            else:
                value_table += bytes([kind]) + struct.pack(form, at)
                contents += content
                at += len(content)
        return struct.pack(form, len(values)) + struct.pack(form, at) + key_table + value_table + contents
    except struct.error:
        return None


def encode(value: Any) -> bytes:
    kind, content = encode_value(value)
    return bytes([kind]) + content


def text_of(value: Any) -> str:
    """What MySQL prints, by way of Python's own JSON."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text_of(k)}: {text_of(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text_of, value)) + "]"
    if isinstance(value, float):
        return double_text(value)
    return json.dumps(value, ensure_ascii=False)


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.integers(-70000, 70000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.text('ab"\\\n\x01', max_size=40)
)


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=10), inner, max_size=5),
        max_leaves=20,
    )


documents = nested(scalars)


def decimal_content(precision: int, scale: int, number: int) -> bytes:
    """A DECIMAL as `decimal2bin` stores it, its precision and scale before it."""
    digits = f"{abs(number):0{precision}d}"
    whole, fraction = digits[: precision - scale], digits[precision - scale :]
    groups = [whole[: len(whole) % 9]] + [whole[at : at + 9] for at in range(len(whole) % 9, len(whole), 9)]
    groups += [fraction[at : at + 9] for at in range(0, scale, 9)]
    stored = b"".join(int(group).to_bytes(min((len(group) + 1) // 2, 4), "big") for group in groups if group)
    stored = bytes([stored[0] ^ 0x80]) + stored[1:]
    return bytes([precision, scale]) + (bytes(byte ^ 0xFF for byte in stored) if number < 0 else stored)
