"""The state of a stream: its owner, its fields, and the state machine that finds the ends of transactions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import engine.net
from engine.net.batching import stream_state
from engine.net.batching.stream_state import Field, StreamState
from engine.net.batching.transaction_state import (
    DEFINES,
    ENDS,
    IDENTIFIES,
    INSIDE,
    NEXT_STATE,
    OUTSIDE,
    PENDING,
    TRANSITION_CODES,
    TRANSITIONS,
    Step,
    Transaction,
)

NET = Path(engine.net.__file__).parent
OWNERS = {
    "event_location.py",
    "receive_kernel.py",
    "statement_kernel.py",
    "stream_state.py",
    "table_map_search.py",
    "transaction_kernel.py",
}


def test_each_constant_is_the_field_of_its_name() -> None:
    assert {field.name: getattr(stream_state, field.name) for field in Field} == {
        field.name: field.value for field in Field
    }


@pytest.mark.parametrize("path", sorted(NET.rglob("*.py")), ids=lambda path: path.stem)
def test_no_other_module_uses_the_fields_or_writes_to_the_vector(path: Path) -> None:
    if path.name in OWNERS:
        return
    fields = {field.name for field in Field} | {"Field"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == stream_state.__name__:
            assert fields.isdisjoint(alias.name for alias in node.names), path
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
            assert node.value.attr != "array", path


def test_every_state_has_a_transition_for_every_step() -> None:
    assert TRANSITIONS.keys() == {(state, step) for state in Transaction for step in Step}


def test_the_kernels_table_is_the_same_as_the_readable_one() -> None:
    for (state, step), transition in TRANSITIONS.items():
        code = int(TRANSITION_CODES[state, step])
        flags = (bool(code & flag) for flag in (ENDS, DEFINES, IDENTIFIES))
        assert (code & NEXT_STATE, *flags) == transition


def walk(*steps: Step) -> tuple[Transaction, list[int]]:
    """The state after these steps from outside, and which of them end a transaction."""
    state, ends = OUTSIDE, []
    for number, step in enumerate(steps):
        transition = TRANSITIONS[state, step]
        state = transition.state
        if transition.ends:
            ends.append(number)
    return state, ends


@pytest.mark.parametrize(
    ("steps", "state", "ends"),
    [
        ((Step.GTID, Step.BEGIN, Step.CONTENT, Step.FINISH), OUTSIDE, [3]),
        ((Step.GTID, Step.DEFINITION, Step.GTID), PENDING, [1]),
        ((Step.GTID, Step.BEGIN, Step.STATEMENT, Step.STATEMENT), INSIDE, []),
        ((Step.CONTENT, Step.STATEMENT), OUTSIDE, [1]),
        ((Step.GTID_BEGIN, Step.STATEMENT, Step.FINISH), OUTSIDE, [2]),
        ((Step.GTID, Step.CREATE_BEGIN, Step.CONTENT, Step.FINISH), OUTSIDE, [3]),
        ((Step.GTID, Step.FINISH, Step.MANAGEMENT), OUTSIDE, [1]),
        ((Step.GTID, Step.BEGIN, Step.MANAGEMENT), INSIDE, []),
    ],
)
def test_transactions(steps: tuple[Step, ...], state: Transaction, ends: list[int]) -> None:
    assert walk(*steps) == (state, ends)


def state_with(**fields: int) -> StreamState:
    state = StreamState(4, opens_payloads=True)
    for name, value in fields.items():
        state.array[Field[name]] = value
    return state


class TestChangingTheBuffer:
    def test_a_gtid_row_that_moves(self) -> None:
        state = state_with(CURSOR=500, COUNT=9, GTID_ROW=7)
        state.change_buffer(context=1, first=6, kept=3, shift=-300)
        assert (state.cursor, state.count, state.gtid_row, state.boundary.rows) == (200, 4, 2, 1)

    def test_a_gtid_event_that_is_context_now(self) -> None:
        state = state_with(CURSOR=500, COUNT=9, GTID_ROW=7)
        state.change_buffer(context=3, first=9, kept=0, shift=-400)
        assert (state.count, state.gtid_row) == (3, 1)

    def test_a_gtid_event_that_is_gone(self) -> None:
        state = state_with(COUNT=9, GTID_ROW=7)
        state.change_buffer(context=1, first=9, kept=0, shift=0)
        assert state.gtid_row is None

    def test_offsets_of_earlier_bytes_are_not_kept(self) -> None:
        state = state_with(CURSOR=500, IDLE_CURSOR=500, PAYLOAD_CURSOR=500)
        state.change_buffer(context=0, first=0, kept=0, shift=-500)
        assert (state.idle_cursor, state.array[Field.PAYLOAD_CURSOR]) == (-1, -1)


def test_a_position_beyond_4_gib_follows_the_low_bits_of_a_header() -> None:
    state = state_with(POSITION=(1 << 32) - 10)
    state.advance_to(20)
    assert state.position == (1 << 32) + 20


@pytest.mark.parametrize(
    ("transaction", "gtid_row", "inside"),
    [(OUTSIDE, -1, False), (PENDING, -1, False), (PENDING, 1, True), (INSIDE, -1, True)],
)
def test_only_a_gtid_makes_a_pending_statement_a_transaction(
    transaction: Transaction, gtid_row: int, inside: bool
) -> None:
    assert state_with(TRANSACTION=transaction, GTID_ROW=gtid_row).inside_transaction is inside
