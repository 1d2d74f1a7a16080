"""Messages between processes: what is packed comes back the same, and anything else is refused."""

from __future__ import annotations

import pickle
import types
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.binlog.position import BinlogPosition
from engine.errors import BinlogError, ConnectionFailed, EngineError
from engine.net.batching.batcher import Batcher
from engine.net.client.catalog_proofs import AlteredMeanwhile
from engine.pipeline.child import failure_of
from engine.pipeline.message import DamagedMessage, Message
from engine.pipeline.messages import Ack, Batch, Result, StreamStatus
from engine.pipeline.reports import Ended, Report

MESSAGES = (Batch, Result, Ack, Report)
REPORT_BODIES = get_args(get_type_hints(Report)["body"])
SCALARS = {
    bool: st.booleans(),
    int: st.integers(-(1 << 63), (1 << 64) - 1),
    float: st.floats(allow_nan=False),
    str: st.text(max_size=5),
    bytes: st.binary(max_size=5),
    types.NoneType: st.none(),
}
STATUS = StreamStatus(BinlogPosition("binlog.000001", 4), ends_transaction=True)
BATCH = Batch(0, "binlog.000001", 4, 0, STATUS, {"shop.orders": b"packed"})


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """All values of a declared type, every field of a record included."""
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint) or hint in REPORT_BODIES or hasattr(hint, "_fields"):
        hints = get_type_hints(hint)
        return st.builds(hint, **{name: values_of(hints[name]) for name in hints})
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is list:
        return st.lists(values_of(arguments[0]), max_size=3)
    if origin is tuple and arguments[1:] == (...,):
        return st.lists(values_of(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, arguments))
    if origin is dict:
        return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=3)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(values_of, arguments))
    return SCALARS[hint]


ANY_MESSAGE = st.sampled_from(MESSAGES).flatmap(values_of)


@given(ANY_MESSAGE)
def test_what_is_packed_comes_back(message: Message) -> None:
    assert type(message).unpack(message.pack()) == message


@given(ANY_MESSAGE, st.data())
def test_a_damaged_frame_is_refused_or_still_fits(message: Message, data: st.DataObject) -> None:
    frame = bytearray(message.pack())
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    frame = frame[: data.draw(st.integers(0, len(frame)))]
    try:
        read = type(message).unpack(frame)
    except DamagedMessage:
        return
    assert type(message).unpack(read.pack()) == read


@given(st.binary(max_size=40), st.sampled_from(MESSAGES))
def test_any_bytes_are_refused(frame: bytes, message: type[Message]) -> None:
    with pytest.raises(DamagedMessage, match=f"not a valid {message.__name__}"):
        message.unpack(frame)


@pytest.mark.parametrize("message", [BATCH, Ack(1, 0)], ids=lambda message: type(message).__name__)
def test_every_field_is_needed_and_no_other(message: Message) -> None:
    values = msgpack.unpackb(message.pack())
    assert list(values) == [field.name for field in fields(message)]
    for name in values:
        lacking = {key: value for key, value in values.items() if key != name}
        with pytest.raises(DamagedMessage, match=f"valid {type(message).__name__} .*missing.* `{name}`"):
            message.unpack(msgpack.packb(lacking))
    with pytest.raises(DamagedMessage, match="unknown: `colour`"):
        message.unpack(msgpack.packb(values | {"colour": 1}))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sequence": "1"}, r"Expected `int`, got `str` - at `\$.sequence`"),
        ({"sequence": True}, r"Expected `int`, got `bool` - at `\$.sequence`"),
        ({"packed_columns": {"t": "text"}}, r"Expected `bytes`, got `str` - at `\$.packed_columns\[...\]`"),
        ({"status": None}, r"Expected `object`, got `None` - at `\$.status`"),
        ({"dropped": []}, r"Expected `object \| null`, got `array` - at `\$.dropped`"),
    ],
)
def test_a_value_of_another_type_is_named(change: dict[str, Any], says: str) -> None:
    with pytest.raises(DamagedMessage, match=says):
        Batch.unpack(msgpack.packb(msgpack.unpackb(BATCH.pack()) | change))


@pytest.mark.parametrize(
    "frame", [Ack(1, 0).pack(), pickle.dumps(BATCH), b""], ids=["Ack", "pickle", "empty"]
)
def test_a_frame_of_something_else_is_refused(frame: bytes) -> None:
    with pytest.raises(DamagedMessage):
        Batch.unpack(frame)


def test_reports_differ_by_their_kind() -> None:
    kinds = [body.__struct_config__.tag for body in REPORT_BODIES]
    assert kinds == [
        *("ready", "dumping", "survivors-hidden", "members-hidden"),
        *("network", "decoder", "sink", "snapshot", "failed", "ended"),
    ]
    packed = msgpack.unpackb(Report("network", Ended()).pack())
    assert packed["body"] == {"kind": "ended", "was_asked": False}
    for kind in ("else", 5, ["ended"]):
        with pytest.raises(DamagedMessage, match="body"):
            Report.unpack(msgpack.packb(packed | {"body": {"kind": kind}}))


@pytest.mark.parametrize(
    ("error", "retryable", "corrupt"),
    [
        (ConnectionFailed("the connection was lost"), True, False),
        (BinlogError("binlog.000001", 120, "torn"), False, True),
    ],
)
def test_the_last_batch_has_the_failure(error: EngineError, retryable: bool, corrupt: bool) -> None:
    batcher = Batcher(lambda table_map: None, marker=None)
    *_, last = batcher.finish(error)
    failure = Batch.unpack(last.header.pack()).status.failure
    assert failure is not None
    assert (failure.message, failure.retryable) == (str(error), retryable)
    assert (failure.corruption is not None) == corrupt
    assert last.header.status.end_of_stream


def test_after_an_alteration_at_its_start_a_run_begins_again_at_once() -> None:
    failure = failure_of(AlteredMeanwhile("shop.t was altered while its definition was read"), "network")
    assert (failure.retryable, failure.unproven) == (True, True)
    assert not failure_of(EngineError("the server is gone"), "network").unproven
