"""Workloads are as their words say."""

from __future__ import annotations

import numpy as np
import pytest

from conflict.whatif.simulating.kernels.world import Wish
from conflict.whatif.simulating.key_choice import Hotspot, Latest, Uniform, Weighted, Zipfian
from conflict.whatif.simulating.workload import (
    InsertKeys,
    KeySpace,
    Listed,
    Mix,
    Pairs,
    Purpose,
    Workload,
    draw_wishes,
    stream,
)

SPACE = KeySpace([100, 10], [4, 2])
COUNT = 200_000


def shares(ranks: np.ndarray, rows: int) -> np.ndarray:
    return np.bincount(ranks, minlength=rows) / len(ranks)


def test_zipfian_rows_have_weights_of_a_power() -> None:
    """Rank r is wanted (r + 1) ** -0.99 times as often as rank 0."""
    found = shares(Zipfian().ranks(stream(1, 0, Purpose.KEYS), COUNT, 50), 50)
    weights = np.arange(1, 51) ** -0.99
    assert np.abs(found - weights / weights.sum()).max() < 0.005


def test_other_choices() -> None:
    """All alike; most operations on few rows; given weights."""
    chance = stream(1, 0, Purpose.KEYS)
    assert np.abs(shares(Uniform().ranks(chance, COUNT, 20), 20) - 0.05).max() < 0.003
    hot = shares(Hotspot(0.1, 0.9).ranks(chance, COUNT, 100), 100)
    assert hot[:10].sum() == pytest.approx(0.9, abs=0.005)
    assert shares(Weighted((3.0, 0.0, 1.0)).ranks(chance, COUNT, 1), 3).tolist() == pytest.approx(
        [0.75, 0, 0.25], abs=0.005
    )


def test_proportions_rates_and_sizes() -> None:
    """In expectation, within four standard deviations."""
    mix = Mix({Wish.READ: 1.0, Wish.UPDATE: 3.0}, {1: 1.0, 3: 1.0}, {0: 4.0, 1: 1.0})
    found = draw_wishes(Workload((1000.0, 0.0), mix), SPACE, 40_000_000, 1, 0)
    assert len(found.start) == pytest.approx(20_000, abs=4 * 20_000**0.5)
    assert set(found.start // 1_000_000 % 2) == {0}
    assert (np.diff(found.start) >= 0).all()
    assert found.sizes.mean() == pytest.approx(2, abs=0.05)
    assert (found.kind == Wish.UPDATE).mean() == pytest.approx(0.75, abs=0.01)
    assert (found.table == 0).mean() == pytest.approx(0.8, abs=0.01)
    assert found.key[found.table == 1].max() == 9


def test_listed_transactions_stay_together() -> None:
    """In the order in which they are listed."""
    shapes = (((Wish.UPDATE, 0), (Wish.INSERT, 1)), ((Wish.DELETE, 1),))
    found = draw_wishes(Workload((100.0,), Listed(shapes, (1.0, 1.0))), SPACE, 5_000_000, 1, 0)
    place = 0
    for size in found.sizes:
        wishes = tuple(zip(found.kind[place : place + size], found.table[place : place + size], strict=True))
        assert wishes in shapes
        place += size


def test_transactions_that_stay_with_a_table() -> None:
    """All wishes are for the table of the first one."""
    pairs = Pairs(((Wish.UPDATE, 0), (Wish.UPDATE, 1)), (1.0, 1.0), {3: 1.0}, stays=1.0)
    found = draw_wishes(Workload((100.0,), pairs), SPACE, 5_000_000, 1, 0)
    assert all(len(set(tables)) == 1 for tables in found.table.reshape(-1, 3))


def test_keys_of_inserts() -> None:
    """Own ones never meet those of the other cluster; shared ones are the same."""
    mix = Mix({Wish.INSERT: 1.0})
    own, other = (draw_wishes(Workload((100.0,), mix), SPACE, 2_000_000, 1, side) for side in (0, 1))
    assert not set(own.key) & set(other.key)
    assert min(own.key) == 100
    shared = Workload((100.0,), mix, inserts={0: InsertKeys.SHARED})
    keys = [draw_wishes(shared, SPACE, 2_000_000, 1, side).key.tolist() for side in (0, 1)]
    assert keys[0][:50] == keys[1][:50] == list(range(100, 150))


def test_latest_follows_inserts() -> None:
    """The newest rows are wanted most, those that were just inserted among them."""
    mix = Mix({Wish.INSERT: 1.0, Wish.READ: 9.0})
    found = draw_wishes(
        Workload((1000.0,), mix, keys={0: Latest()}, inserts={0: InsertKeys.SHARED}), SPACE, 10_000_000, 1, 0
    )
    newest = 100 + np.cumsum(found.kind == Wish.INSERT)
    age = (newest - found.key)[found.kind == Wish.READ]
    assert (age >= 1).all()
    assert np.median(age) < 20


def test_a_cluster_prefers_its_own_half() -> None:
    """Every second row is its own."""
    for side in (0, 1):
        found = draw_wishes(Workload((1000.0,), Mix({Wish.READ: 1.0}), affinity=0.8), SPACE, 5_000_000, 1, side)
        assert (found.key % 2 == side).mean() == pytest.approx(0.9, abs=0.02)


def test_columns_of_updates() -> None:
    """As many as are said, all of them by default, of each table as many as it has."""
    two = draw_wishes(Workload((500.0,), Mix({Wish.UPDATE: 1.0}), columns=2), SPACE, 2_000_000, 1, 0)
    assert {(int(bits) & 0xF).bit_count() for bits in two.writes} == {2}
    every = draw_wishes(Workload((500.0,), Mix({Wish.UPDATE: 1.0}, tables={1: 1.0})), SPACE, 2_000_000, 1, 0)
    assert {int(bits) & 0xFFFF for bits in every.writes} == {3}
    sets = draw_wishes(
        Workload((500.0,), Mix({Wish.UPDATE: 1.0}), column_sets={0: ((5, 1.0),)}), SPACE, 2_000_000, 1, 0
    )
    assert {int(bits) & 0xF for bits in sets.writes} == {5}


def test_a_stream_does_not_depend_on_another() -> None:
    """More transactions of one cluster leave the other's as they were."""
    first = draw_wishes(Workload((10.0,), Mix({Wish.UPDATE: 1.0})), SPACE, 5_000_000, 9, 1)
    draw_wishes(Workload((1000.0,), Mix({Wish.UPDATE: 1.0})), SPACE, 5_000_000, 9, 0)
    again = draw_wishes(Workload((10.0,), Mix({Wish.UPDATE: 1.0})), SPACE, 5_000_000, 9, 1)
    assert first.start.tolist() == again.start.tolist()
    assert first.key.tolist() == again.key.tolist()
