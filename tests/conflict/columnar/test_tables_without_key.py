"""A table without a primary key beside others: what both engines say of the others is the same."""

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from conflict.columnar.setups_over_time import compares_reflected
from conflict.jobs.runner import in_process
from conflict.rules.counters import REFLECTED_RECEIVED
from tests.conflict.columnar.both_engines import by_kernels, by_reference
from tests.conflict.keyless_histories import LOOSE, with_loose_rows, with_loose_table
from tests.conflict.random_histories import SETTINGS, configuration, make_history


def others(found: dict[str, Any]) -> dict[str, Any]:
    """Return exceptions rows and final rows of the tables with a primary key, and the counters of conflicts."""
    parts = {name: each for name, each in found.items() if name.split()[0] in ("rows", "exceptions", "epochs")}
    counters = {
        cluster: {name: value for name, value in each.items() if name != REFLECTED_RECEIVED and value}
        for cluster, each in found["counters"].items()
    }
    return {name: each for name, each in parts.items() if "loose" not in name} | {"counters": counters}


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(10, 100),
    setting=st.integers(0, len(SETTINGS) - 1),
)
@settings(max_examples=15)
def test_inserts_without_a_key_change_nothing_else(seed: int, steps: int, setting: int) -> None:
    """
    The reference engine, with such inserts in half of the transactions, says what the kernels say without them.

    A write always adds a row, whatever the function of its table, and is no part of a transaction that is rejected.
    """
    run = configuration(setting)
    assume(not compares_reflected(run))
    history = make_history(seed, steps, complete=True)
    loose = with_loose_rows(history, seed, inserts_only=True)
    expected = by_kernels(history, run, in_process, buckets=2, epochs_per_segment=3)
    found = by_reference(loose, with_loose_table(run))
    assert any(name.endswith(LOOSE.removeprefix("db.")) for name in found)
    assert others(found) == others(expected)
