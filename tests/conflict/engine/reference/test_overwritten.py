"""Changes that an applier overwrote unseen, worked out by hand."""

from __future__ import annotations

from conflict.engine.inference.replay import resolve
from conflict.engine.reference.overwritten import overwritten_changes
from tests.conflict.histories import history, setups


def overwritten(text: str) -> dict[str, list[tuple[int, int]]]:
    """Return, per cluster, epoch and group of its changes that its applier overwrote; no table has a function."""
    made, tables = history(text), setups(None)
    resolution = resolve(made, tables)
    known = {name: {each: setup.table for each, setup in own.items()} for name, own in tables.items()}
    found = overwritten_changes(made, known, resolution.outcomes)
    return {name: [(each.epoch, each.group) for each in own] for name, own in found.items()}


def test_a_change_that_had_not_been_seen() -> None:
    """A updates row 1 before B's update arrives there; B applies it over its own."""
    found = overwritten("A:in1=5@1 B:<1@11 B:un1=5>7@12 A:un1=5>6@2 B:<2@13")
    assert found == {"A": [], "B": [(12, 0)]}


def test_a_change_that_had_been_seen() -> None:
    """B's update arrived at A before A made its own."""
    found = overwritten("A:in1=5@1 B:<1@11 B:un1=5>7@12 A:<12@2 A:un1=7>6@3 B:<3@13")
    assert found == {"A": [], "B": []}


def test_an_epoch_that_is_applied_again_in_the_same_own_epoch() -> None:
    """B applies A's epoch 2, updates row 1, and applies epoch 2 once more: that undoes B's update."""
    found = overwritten("A:in1=5@1 B:<1@11 A:un1=5>6@2 B:<2@12 B:un1=6>7@12 B:<2@12")
    assert found == {"A": [], "B": [(12, 1)]}


def test_what_a_change_that_had_seen_it_overwrote_is_not_lost_later() -> None:
    """A's update in epoch 4 had seen B's. When B is set back and applies epoch 2 again, nothing of B's is there."""
    seen = "A:in1=5/5@1 B:<1@11 A:un1=5>6@2 B:<2@12 B:un1=6>7@13 A:<13@3"
    assert overwritten(f"{seen} A:un1=7/5>8/8@4 B:<4@14 B:<2@15") == {"A": [], "B": []}
    assert overwritten(f"{seen} A:un1=/5>/8@4 B:<4@14 B:<2@15") == {"A": [], "B": [(13, 0)]}
    assert overwritten(f"{seen} A:un1=7/5>8/8@4 B:<4@14 B:un1=8>9@15 B:<2@16") == {"A": [], "B": [(15, 0)]}
