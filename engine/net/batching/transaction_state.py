"""The state machine that finds the ends of transactions.

Theory. The stream is in one of three states: outside of transactions, inside of one, or after an event that
announces a statement (its GTID, or context events such as INTVAR). Each event is a `Step` for the machine.
`TRANSITIONS` gives for each pair of state and step the next state, whether the event ends a transaction, and
whether it may change the definition of a table, or its rows. BEGIN, XA START and CREATE TABLE … SELECT lead
inside; there only XID, COMMIT, ROLLBACK or the like end the transaction. Any other statement outside of a
transaction is a whole transaction, since the server commits it implicitly. A flag of MariaDB's GTID event
says whether it is a BEGIN as well. The receive kernel uses the table as an array, `TRANSITION_CODES`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.binlog import event_types as types
from engine.binlog import statements
from engine.binlog.event_roles import (
    ANONYMOUS_GTID,
    EVENT_ROLES,
    MANAGEMENT,
    MYSQL_GTID,
    PAYLOAD,
    STATEMENT,
    TAGGED_GTID,
    TRANSACTION_FINISH,
)


class Transaction(IntEnum):
    """Whether the stream is inside a transaction."""

    OUTSIDE = 0
    """Between transactions."""
    PENDING = 1
    """After a GTID or a statement's context: the next statement ends the transaction unless it begins one."""
    INSIDE = 2
    """In a transaction that an XID, COMMIT or the like ends."""


class Step(IntEnum):
    """What an event means for transactions."""

    CONTENT = 0
    """Part of a transaction or the context of a statement."""
    MANAGEMENT = 1
    """An event between transactions."""
    GTID = 2
    """The GTID of MySQL, or of a MariaDB statement without BEGIN."""
    GTID_BEGIN = 3
    """A MariaDB GTID that is also the BEGIN of its transaction."""
    BEGIN = 4
    STATEMENT = 5
    DEFINITION = 6
    """A statement that may change the definition of a table, or rows without row events."""
    CREATE_BEGIN = 7
    """MySQL 8's CREATE TABLE … SELECT, whose rows follow in the same transaction."""
    FINISH = 8
    """XID, COMMIT, ROLLBACK, XA PREPARE, XA COMMIT, or a whole compressed transaction."""
    XA_ROLLBACK = 9
    """XA ROLLBACK, which may undo the rows of an earlier transaction that ended with XA PREPARE."""


class Transition(NamedTuple):
    """The effect of an event on the transaction."""

    state: Transaction
    ends: bool = False
    """The event is the last one of its transaction."""
    defines: bool = False
    """The event may change the definition of a table, or rows without row events."""
    identifies: bool = False
    """The event is the GTID of the transaction that follows."""


OUTSIDE, PENDING, INSIDE = Transaction

TRANSITIONS: dict[tuple[Transaction, Step], Transition] = {
    (OUTSIDE, Step.CONTENT): Transition(PENDING),
    (OUTSIDE, Step.MANAGEMENT): Transition(OUTSIDE),
    (OUTSIDE, Step.GTID): Transition(PENDING, identifies=True),
    (OUTSIDE, Step.GTID_BEGIN): Transition(INSIDE, identifies=True),
    (OUTSIDE, Step.BEGIN): Transition(INSIDE),
    (OUTSIDE, Step.STATEMENT): Transition(OUTSIDE, ends=True),
    (OUTSIDE, Step.DEFINITION): Transition(OUTSIDE, ends=True, defines=True),
    (OUTSIDE, Step.CREATE_BEGIN): Transition(INSIDE, defines=True),
    (OUTSIDE, Step.FINISH): Transition(OUTSIDE, ends=True),
    (OUTSIDE, Step.XA_ROLLBACK): Transition(OUTSIDE, ends=True, defines=True),
    #
    (PENDING, Step.CONTENT): Transition(PENDING),
    (PENDING, Step.MANAGEMENT): Transition(PENDING),
    (PENDING, Step.GTID): Transition(PENDING, identifies=True),
    (PENDING, Step.GTID_BEGIN): Transition(INSIDE, identifies=True),
    (PENDING, Step.BEGIN): Transition(INSIDE),
    (PENDING, Step.STATEMENT): Transition(OUTSIDE, ends=True),
    (PENDING, Step.DEFINITION): Transition(OUTSIDE, ends=True, defines=True),
    (PENDING, Step.CREATE_BEGIN): Transition(INSIDE, defines=True),
    (PENDING, Step.FINISH): Transition(OUTSIDE, ends=True),
    (PENDING, Step.XA_ROLLBACK): Transition(OUTSIDE, ends=True, defines=True),
    #
    (INSIDE, Step.CONTENT): Transition(INSIDE),
    (INSIDE, Step.MANAGEMENT): Transition(INSIDE),
    (INSIDE, Step.GTID): Transition(PENDING, identifies=True),
    (INSIDE, Step.GTID_BEGIN): Transition(INSIDE, identifies=True),
    (INSIDE, Step.BEGIN): Transition(INSIDE),
    (INSIDE, Step.STATEMENT): Transition(INSIDE),
    (INSIDE, Step.DEFINITION): Transition(INSIDE, defines=True),
    (INSIDE, Step.CREATE_BEGIN): Transition(INSIDE, defines=True),
    (INSIDE, Step.FINISH): Transition(OUTSIDE, ends=True),
    (INSIDE, Step.XA_ROLLBACK): Transition(OUTSIDE, ends=True, defines=True),
}

NEXT_STATE, ENDS, DEFINES, IDENTIFIES = 3, 4, 8, 16
"""The bits of a transition's code: the next state, and the three flags."""

TRANSITION_CODES: NDArray[np.int64] = np.zeros((len(Transaction), len(Step)), np.int64)
"""[`Transaction`, `Step`] → code of the transition."""
for _pair, _transition in TRANSITIONS.items():
    _flags = _transition.ends * ENDS | _transition.defines * DEFINES | _transition.identifies * IDENTIFIES
    TRANSITION_CODES[_pair] = _transition.state | _flags

_STEPS_OF_STATEMENTS: dict[int, Step] = {
    statements.BEGIN: Step.BEGIN,
    statements.XA_START: Step.BEGIN,
    statements.COMMIT: Step.FINISH,
    statements.ROLLBACK: Step.FINISH,
    statements.XA_COMMIT: Step.FINISH,
    statements.XA_ROLLBACK: Step.XA_ROLLBACK,
    statements.DEFINITION: Step.DEFINITION,
    statements.ATOMIC_CREATE: Step.CREATE_BEGIN,
    statements.MANIPULATION: Step.DEFINITION,
}
STATEMENT_STEPS: NDArray[np.int64] = np.full(statements.MANIPULATION + 1, Step.STATEMENT, np.int64)
"""Kind of statement → `Step`, for query events."""
for _kind, _step in _STEPS_OF_STATEMENTS.items():
    STATEMENT_STEPS[_kind] = _step

_STEPS_OF_ROLES: dict[int, Step] = {
    MYSQL_GTID: Step.GTID,
    ANONYMOUS_GTID: Step.GTID,
    TAGGED_GTID: Step.GTID,
    STATEMENT: Step.STATEMENT,
    MANAGEMENT: Step.MANAGEMENT,
    TRANSACTION_FINISH: Step.FINISH,
    PAYLOAD: Step.FINISH,
}
EVENT_STEPS: NDArray[np.int64] = np.full(256, Step.CONTENT, np.int64)
"""Type code → `Step`, for events other than query events and MariaDB's GTID events."""
for _role, _step in _STEPS_OF_ROLES.items():
    EVENT_STEPS[np.isin(EVENT_ROLES, _role)] = _step
# A compressed statement may be one that changes a definition, and LOAD DATA changes rows.
EVENT_STEPS[[types.QUERY_COMPRESSED_EVENT, types.EXECUTE_LOAD_QUERY_EVENT]] = Step.DEFINITION

GTID, GTID_BEGIN = int(Step.GTID), int(Step.GTID_BEGIN)
