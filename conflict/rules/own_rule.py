"""
What a conflict function of one's own declares, if no row of cells expresses it: what decides, and what that needs.

`conflict.resolvers.resolver` makes one of what a user writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, StrEnum

import attrs

from conflict.rules.decision import Decision, IncomingOperation, RowState
from ndb_formats.events.rows_event import Operation


class Image(Enum):
    """Which image of an operation must carry the resolve column."""

    BEFORE = "before"
    AFTER = "after"


class Read(StrEnum):
    """What a rule of one's own can read besides the operation, whether the row exists, and the resolve column."""

    VALUES = "values"  # columns of the row and of the images
    TIMES = "times"  # when a change was committed
    SITES = "sites"  # which cluster made a change, and whether a row was last changed here
    EPOCHS = "epochs"  # numbers of epochs
    UNSEEN = "unseen"  # whether the other cluster can have seen the row's last change


EVERYTHING = frozenset(Read)
CHANGED_COLUMNS = "columns that it changes"  # what an image lacks, in messages


@attrs.frozen(eq=False)
class OwnRule:
    """
    A rule that no cells express, and what it declares; `conflict.resolvers.resolver` makes one.

    Attributes:
        decide: The rule; it is pure, and gets `conflict.rules.seen.FoundRow` and `IncomingChange` from an engine.
        needs: The image that must carry the resolve column, per operation.
        needs_changed: Operations whose before image must carry every column that they change.
        takes_column: Whether its argument is a resolve column.
        refreshes: Whether rows with rejected operations are refreshed, on every cluster that has it.
        reads: What it reads; it gets nothing else.
    """

    decide: Callable[[RowState, IncomingOperation], Decision]
    needs: Mapping[Operation, Image] = attrs.field(factory=dict)
    needs_changed: frozenset[Operation] = frozenset()
    takes_column: bool = True
    refreshes: bool = False
    reads: frozenset[Read] = EVERYTHING
