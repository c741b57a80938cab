"""What epoch applies are to each other, compared with a search through all of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from conflict.engine.kernels.arrays import EPOCH_APPLY, EpochApplies, RowMoments
from tests.examples import examples

APPLIES = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(0, 4)), max_size=12)


def applies_of(given: list[tuple[int, int, int]]) -> EpochApplies:
    """Return epoch applies with these appliers, foreign epochs and own epochs."""
    columns = np.array(given, np.int64).reshape(-1, 3).T
    names = ("applier", "foreign_epoch", "epoch")
    own = {name: column.astype(EPOCH_APPLY[name]) for name, column in zip(names, columns, strict=True)}
    beside = {name: np.zeros(len(given), np.int64) for name in ("role", "committed", "server", "source_server")}
    return EpochApplies.of({**own, **beside}.items(), np.zeros(len(given), np.int32), RowMoments.none())


@given(APPLIES)
@examples(50, long=2000)
def test_those_before_and_those_that_receive(given: list[tuple[int, int, int]]):
    """The one before is of the same applier; those that receive an epoch stand together, whatever order it is in."""
    applies = applies_of(given)
    for number, (applier, _, epoch) in enumerate(given):
        record = applies.records[number]
        before = [place for place in range(number) if given[place][0] == applier]
        assert record["previous"] == max(before, default=-1)
        theirs = [place for place, each in enumerate(given) if each[0] != applier]
        theirs.sort(key=lambda place: given[place][1])
        start = applies.second if applier == 0 else 0
        assert applies.by_epoch[start : start + len(theirs)].tolist() == theirs
        earlier = sum(given[place][1] < epoch for place in theirs)
        assert record["received_start"] == start + earlier
