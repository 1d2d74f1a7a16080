"""The common type of a column whose type changed over time: the narrowest that stores every value exactly.

Numbers widen, dates become timestamps, text becomes binary if a version is binary; if no numeric or temporal
type stores both, the common type is text. A type is never a float if a float would round its values.
"""

from __future__ import annotations

import pyarrow as pa

_INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_FLOAT_BITS = {pa.float32(): 24, pa.float64(): 53}
"""Integers of fewer bits are exact in the float type."""
_LARGEST_PRECISION = 38


def plain_type(data_type: pa.DataType) -> pa.DataType:
    """The type that users see: the value type of run-end and dictionary encodings."""
    if pa.types.is_run_end_encoded(data_type) or pa.types.is_dictionary(data_type):
        return data_type.value_type
    return data_type


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The narrowest plain type that both cast to without loss; None if there is none."""
    if one == other:
        return one
    for first, second in ((one, other), (other, one)):
        wider = _wider(first, second)
        if wider is not None:
            return wider
    return pa.string() if _has_text(one) and _has_text(other) else None


def _wider(narrow: pa.DataType, wide: pa.DataType) -> pa.DataType | None:
    """The type that stores both, if the kind of `wide` can store the kind of `narrow`; else None."""
    if pa.types.is_null(narrow):
        return wide
    if pa.types.is_boolean(narrow) and wide in _INTEGER_DIGITS:
        return wide
    if narrow in _INTEGER_DIGITS and wide in _INTEGER_DIGITS:
        return max(narrow, wide, key=_INTEGER_DIGITS.__getitem__)
    if _is_exact(narrow) and pa.types.is_decimal(wide):
        return _wider_decimal(narrow, wide)
    if narrow in _INTEGER_DIGITS and wide in _FLOAT_BITS:
        fitting = (t for t, bits in _FLOAT_BITS.items() if narrow.bit_width <= bits)
        return next((t for t in fitting if t.bit_width >= wide.bit_width), None)
    if narrow in _FLOAT_BITS and wide in _FLOAT_BITS:
        return pa.float64()
    if pa.types.is_date32(narrow) and wide == pa.timestamp("us"):
        return wide
    if pa.types.is_string(narrow) and pa.types.is_binary(wide):
        return wide
    return None


def _is_exact(data_type: pa.DataType) -> bool:
    return data_type in _INTEGER_DIGITS or pa.types.is_decimal(data_type)


def _wider_decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    shapes = [
        (t.precision - t.scale, t.scale) if pa.types.is_decimal(t) else (_INTEGER_DIGITS[t], 0)
        for t in (one, other)
    ]
    scale = max(scale for _, scale in shapes)
    precision = max(whole for whole, _ in shapes) + scale
    return pa.decimal128(precision, scale) if precision <= _LARGEST_PRECISION else pa.string()


def _has_text(data_type: pa.DataType) -> bool:
    return (
        _is_exact(data_type)
        or data_type in _FLOAT_BITS
        or pa.types.is_string(data_type)
        or pa.types.is_date32(data_type)
        or pa.types.is_timestamp(data_type)
    )
