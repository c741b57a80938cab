"""At which own positions a binlog shows that an epoch was applied."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from conflict.runs.history_facts import applied_at
from tests.examples import EVERY_COMMIT, examples

EPOCHS = pa.schema([("number", pa.uint64()), ("applied_group", pa.list_(pa.int32()))])
NUMBERS = st.sampled_from([1, 2, 3, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1])
GROUPS = st.integers(0, 3) | st.just(2**31 - 1)


@examples(EVERY_COMMIT)
@given(
    st.dictionaries(NUMBERS, st.lists(GROUPS, unique=True)),
    st.sets(st.tuples(NUMBERS, GROUPS)),
    st.integers(1, 3),
)
def test_applied_at(epochs: dict[int, list[int]], places: set[tuple[int, int]], at_once: int) -> None:
    """However the epochs come in parts; the count is that of all epochs."""
    rows = sorted(epochs.items())
    parts = [
        pa.table([list(column) for column in zip(*rows[start : start + at_once], strict=True)], schema=EPOCHS)
        for start in range(0, len(rows), at_once)
    ]
    wanted = sorted(places)
    applied, known = applied_at(parts, np.array(wanted, np.uint64).reshape(-1, 2))
    assert applied == sum(map(len, epochs.values()))
    assert known.tolist() == [group in epochs.get(number, ()) for number, group in wanted]
