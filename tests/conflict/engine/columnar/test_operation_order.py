"""The order of operations in their epochs, over all buckets."""

import attrs
import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from conflict.engine.columnar.order import ORDER, operation_orders, sorted_by_order
from conflict.engine.kernels.arrays import EPOCH_APPLY, BucketRows, Decisions, EpochApplies, Logged, RowMoments

SMALL = st.integers(0, 2)
STEPS = st.lists(st.tuples(SMALL, st.just(1), SMALL, st.integers(0, 1)), max_size=3)
END = st.tuples(SMALL, st.just(0), SMALL, st.just(-1))
LISTS = st.builds(lambda steps, end: [number for step in [*steps, end] for number in step], STEPS, END)


@given(st.lists(st.tuples(st.lists(SMALL, min_size=2, max_size=2), LISTS), max_size=30), st.integers(0, 5))
def test_orders_compare_as_lists_do(rows: list[tuple[list[int], list[int]]], skipped: int) -> None:
    """By keys, then by order; the sort is stable, wherever the list array starts."""
    rows = [([0, 0], [0, 0, 0, -1])] * skipped + rows
    orders = pa.array([order for _, order in rows], ORDER)[skipped:]
    rows = rows[skipped:]
    keys = np.array([key for key, _ in rows], np.int64).reshape(-1, 2)
    assert sorted_by_order(keys, orders).tolist() == sorted(range(len(rows)), key=rows.__getitem__)


def arrays(kind: type, length: int, **given: list[int]) -> object:
    """Return arrays of one kind, all zero but those given."""
    return kind(**{field.name: np.array(given.get(field.name, [0] * length)) for field in attrs.fields(kind)})


def applies_of(**given: list[int]) -> EpochApplies:
    """Return epoch applies, all zero but the columns given."""
    count = len(given["applier"])
    columns = {name: np.array(column, EPOCH_APPLY[name]) for name, column in given.items()}
    beside = {name: np.zeros(count, np.int64) for name in ("role", "committed", "server", "source_server")}
    return EpochApplies.of({**columns, **beside}.items(), np.zeros(count, np.int32), RowMoments.none())


def test_steps_lead_from_an_operation_to_its_causes() -> None:
    """An own change has no cause; a refresh is ordered by its cause, which may be a refresh itself."""
    applies = applies_of(applier=[1, 0, 1], group=[7, 8, 9])
    rows = (arrays(BucketRows, 2, group=[3, 4], ordinal=[5, 6]), arrays(BucketRows, 0))
    # Decision 0 is on row 1 of the first cluster, 1 on what the second one's applier made of it, 2 on the next.
    decisions = arrays(Decisions, 3, apply=[0, 1, 2], source=[1, -1, -2])
    logged = arrays(Logged, 2, apply=[0, 1], refresh=[1, 0], decision=[0, 1])
    expected = [[4, 0, 6, -1], [7, 1, 0, 1, 4, 0, 6, -1], [8, 1, 1, 0, 7, 1, 0, 1, 4, 0, 6, -1]]
    chosen = np.array([2, 0, 1])
    found = operation_orders(chosen, decisions, logged, applies, rows)
    assert found.to_pylist() == [expected[decision] for decision in chosen]


def test_nothing() -> None:
    """Without operations there are no orders, and nothing to sort."""
    empty = arrays(Decisions, 0), arrays(Logged, 0), applies_of(applier=[], group=[])
    found = operation_orders(np.zeros(0, np.int64), *empty, (arrays(BucketRows, 0), arrays(BucketRows, 0)))
    assert (found.type, len(found)) == (ORDER, 0)
    assert sorted_by_order(np.zeros((0, 2), np.int64), found).tolist() == []
