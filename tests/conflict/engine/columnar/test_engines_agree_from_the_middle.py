"""The reference engine and the kernels give the same answer from the middle of any History."""

from hypothesis import assume, example, given
from hypothesis import strategies as st

from conflict.engine.inference.replay import resolve
from conflict.errors import ConfigurationError
from conflict.history.tasks import in_process
from conflict.rules.replication_table import Role
from tests.conflict.cut_histories import cut_history
from tests.conflict.engine.columnar.both_engines import by_kernels, by_reference
from tests.conflict.random_histories import BINLOG_TYPES, ROLES, SETTINGS, USUAL_ROLES, configuration, make_history
from tests.conflict.truthful_histories import truthful
from tests.examples import examples


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(0, 120),
    setting=st.integers(0, len(SETTINGS) - 1),
    roles=st.sampled_from([*[USUAL_ROLES] * 4, *ROLES]),
    binlog_type=st.sampled_from(BINLOG_TYPES),
    complete=st.booleans(),
    cuts=st.tuples(st.integers(0, 2**16), st.integers(0, 2**16)),
    buckets=st.integers(1, 3),
)
@examples(10, long=800)
@example(seed=674645, steps=53, setting=30, roles=USUAL_ROLES, binlog_type=7, complete=False, cuts=(1798, 0), buckets=1)
@example(
    seed=3501806954, steps=97, setting=30, roles=USUAL_ROLES, binlog_type=6, complete=False, cuts=(27444, 0), buckets=2
)
@example(
    seed=1396889448, steps=115, setting=22, roles=ROLES[2], binlog_type=7, complete=True, cuts=(0, 60562), buckets=3
)
def test_kernels_agree_with_the_reference_engine(
    seed: int,
    steps: int,
    setting: int,
    roles: tuple[Role, Role],
    binlog_type: int,
    complete: bool,
    cuts: tuple[int, int],
    buckets: int,
) -> None:
    """Outcomes, open decisions, exceptions rows, counters, rows and what is not known are equal."""
    run = configuration(setting, roles, binlog_type)
    history = truthful(make_history(seed, steps, complete=complete, roles=roles), run.setups.at_end)
    whole = resolve(history, run.setups.at_end)
    history, shown = cut_history(history, whole, cuts)
    try:
        found = by_kernels(history, run, in_process, buckets=buckets, epochs_per_segment=3, shown=shown)
    except ConfigurationError as left:
        assume("only the reference engine" not in str(left))
        raise
    assert by_reference(history, run, shown) == found
