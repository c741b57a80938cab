"""
The loop of all inference: try every hypothesis with the applier, keep those whose effect the binlogs show.

A hypothesis is what a row was, where an epoch was applied, or when a row was judged. What decisions depend on is cut
into a few cases, so that trying each of them tries everything that there can have been (see docs/inference.md). A trial
is a pass of the applier over a few operations, which is rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import attrs

from conflict.engine.inference.observed import ObservedCluster, ObservedPass
from conflict.engine.reference.applier import effects_of
from conflict.engine.reference.cluster import LoggedChange
from conflict.engine.reference.row_store import Row, RowKey
from conflict.history.model import Cluster
from conflict.history.shown_effects import Effect
from conflict.history.timeline import START, EpochApply
from conflict.rules.decision import Decision
from conflict.rules.table_setup import TableSetup

MOST_WAYS = 10_000  # so many sequences of decisions on the operations on one row are looked at
AnyHypothesis = TypeVar("AnyHypothesis")
AnyTrial = TypeVar("AnyTrial")


def possible(
    hypotheses: Iterable[AnyHypothesis],
    trial: Callable[[AnyHypothesis], AnyTrial | None],
    is_shown: Callable[[AnyTrial], bool] = lambda tried: True,
) -> list[AnyTrial]:
    """
    Return the trials of the hypotheses that can be true, in their order.

    Args:
        hypotheses: What there can have been.
        trial: Makes the trial of one; None if it cannot have been so.
        is_shown: Whether the binlogs show the effect of a trial.
    """
    return [tried for tried in map(trial, hypotheses) if tried is not None and is_shown(tried)]


def answers(tried: Iterable[AnyTrial], answer: Callable[[AnyTrial], Hashable]) -> dict[Hashable, list[AnyTrial]]:
    """Return trials by what they answer, in order: more than one answer is left open."""
    found: dict[Hashable, list[AnyTrial]] = {}
    for each in tried:
        found.setdefault(answer(each), []).append(each)
    return found


class TooManyWaysError(Exception):
    """Operations can have been judged in more ways than are looked at."""


def tried_in_turn(
    count: int, moments: Sequence[AnyHypothesis], trial: Callable[[int, AnyHypothesis], AnyTrial | None]
) -> Iterator[list[tuple[AnyTrial, ...]]]:
    """
    Yield how operations can have been judged that come one after the other, each at its own moment.

    Args:
        count: How many operations.
        moments: Moments in their order; no operation was judged before the one before it.
        trial: Makes the trial of an operation at a moment; None if it cannot have been judged then.

    Yields:
        For none of them, for the first one, for the first two and so on, the sequences of trials without repetition.

    Raises:
        TooManyWaysError: There are more than `MOST_WAYS`.
    """
    found: dict[tuple[AnyTrial, ...], int] = {(): 0}  # each with the earliest moment of its last operation
    yield list(found)
    for number in range(count):
        tried = [trial(number, moment) for moment in moments]
        longer: dict[tuple[AnyTrial, ...], int] = {}
        for before, earliest in found.items():
            for at, each in enumerate(tried[earliest:], start=earliest):
                if each is not None:
                    longer.setdefault((*before, each), at)
        if len(longer) > MOST_WAYS:
            raise TooManyWaysError
        found = longer
        yield list(found)


@attrs.frozen
class Tried:
    """A state that a row may have, the decisions on its operations, their effect on it, and the row after them."""

    state: Row | None
    decisions: tuple[Decision, ...]
    effect: Effect | None
    after: Row | None


def try_state(
    cluster: ObservedCluster, source: Cluster, apply: EpochApply, entries: Sequence[LoggedChange], state: Row | None
) -> Tried:
    """
    Return what the operations of an epoch on one row do if it has a given state; none after one that stops the applier.

    Args:
        cluster: The applying cluster, before the epoch; what is tried is undone.
        source: The cluster whose epoch it is.
        apply: The epoch apply.
        entries: The operations.
        state: The state of the row.
    """
    trial, key = ObservedPass(cluster, source, apply), entries[0].row
    cluster.store.put(key, state)
    trial.handle_all(entries)
    effect, after = effects_of(trial).get(key), cluster.store.get(key)
    cluster.store.roll_back()
    return Tried(state, tuple(each.decision for each in trial.decided), effect, after)


def scratch(
    cluster: ObservedCluster,
    apply: EpochApply,
    setups: dict[str, TableSetup],
    rows: Mapping[RowKey, Row | None],
    known: int,
    *,
    skip_missing: bool,
) -> ObservedCluster:
    """
    Return a cluster with some rows alone, to try an epoch apply on.

    Args:
        cluster: The applying cluster, which stays as it is.
        apply: The epoch apply.
        setups: How its server set up each table then.
        rows: The rows, as they were then.
        known: Max replicated epoch.
        skip_missing: Skip operations that lack a value to compare, instead of stopping the applier.
    """
    shown = cluster.shown or {START: {}}  # else no effect would not be one that is shown
    made = ObservedCluster(cluster.cluster, setups, cluster.layouts, skip_missing=skip_missing, shown=shown)
    made.act_as(apply.role)
    made.max_replicated_epoch = known
    for key, row in rows.items():
        made.store.put(key, row)
    made.store.commit()
    return made
