"""What stops an applier without a search, and what the search says of it."""

from __future__ import annotations

import pytest

from conflict.resolvers.user_policies import asked_function
from conflict.rules.functions import FUNCTIONS
from conflict.whatif.diverging.scope import Goal, Scope, Values
from conflict.whatif.diverging.search import search
from conflict.whatif.diverging.state import NAME
from conflict.whatif.diverging.stopping import can_stop
from conflict.whatif.zoo.pairs import FORMATS, Bounds, all_functions, pairs_of

SCOPES = [
    pair.scope for pair in pairs_of(all_functions(), FORMATS, tuple(Values), Bounds(2, 1, 1, 0)) if pair.refusal is None
]


@pytest.mark.parametrize("scope", SCOPES, ids=lambda each: f"{each.function}, {each.values}, type {each.binlog_type}")
def test_a_search_finds_what_can_stop(scope: Scope) -> None:
    """Every function, format and kind of values: what cannot stop does not within 2 transactions, and the rest does."""
    stops = search(scope, Goal.STOP).steps is not None
    as_write = any(each[NAME].format.as_write for each in scope.setups)
    assert can_stop(scope) >= stops
    if not as_write:
        assert can_stop(scope) == stops


@pytest.mark.parametrize(
    ("function", "binlog_type", "expected"),
    [
        ("NDB$MAX(x)", 7, False),  # type 7 logs whole rows before and after
        ("NDB$MAX(x)", 6, True),  # of a deleted row, type 6 logs the key alone
        ("NDB$MAX_DELETE_WIN(x)", 6, False),  # which is all that a delete needs that always wins
        ("NDB$OLD(x)", 6, True),
        ("NDB$EPOCH()", 2, False),  # compares no column
        ("docs.examples.highest:highest", 7, False),
        (None, 2, False),
    ],
)
def test_by_hand(function: str | None, binlog_type: int, expected: bool) -> None:
    """By the images that a format logs: docs/formats.md."""
    asked, known = (None, FUNCTIONS) if function is None else asked_function(function)
    assert can_stop(Scope(asked, binlog_type, functions=known)) is expected
