"""The rest of any History that is cut anywhere agrees with the whole, wherever it decides."""

from collections import Counter

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from conflict.engine.inference.replay import resolve
from conflict.engine.ledger.resolution import Resolution
from conflict.engine.reference.replay import resolve as plain_resolve
from conflict.rules.decision import Cause, Verdict
from conflict.rules.replication_table import Role
from tests.conflict.cut_histories import cut_history
from tests.conflict.random_histories import BINLOG_TYPES, ROLES, SETTINGS, USUAL_ROLES, configuration, make_history
from tests.conflict.truthful_histories import truthful


def decisions(resolution: Resolution) -> dict[tuple[object, ...], tuple[Verdict, Cause]]:
    """Return the decision on each operation; numbered from the last time it was applied."""
    found: dict[tuple[object, ...], tuple[Verdict, Cause]] = {}
    times = Counter[tuple[object, ...]]()
    for each in reversed(resolution.outcomes):
        operation = each.applier, each.source_epoch, each.group, each.ordinal, each.table, each.key, each.refresh
        times[operation] += 1
        found[*operation, times[operation]] = each.verdict, each.cause
    return found


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(0, 120),
    setting=st.integers(0, len(SETTINGS) - 1),
    roles=st.sampled_from([*[USUAL_ROLES] * 4, *ROLES]),
    binlog_type=st.sampled_from(BINLOG_TYPES),
    complete=st.booleans(),
    cuts=st.tuples(st.integers(0, 2**16), st.integers(0, 2**16)),
)
@settings(max_examples=100, derandomize=True)
def test_the_rest_agrees_with_the_whole(
    seed: int,
    steps: int,
    setting: int,
    roles: tuple[Role, Role],
    binlog_type: int,
    complete: bool,
    cuts: tuple[int, int],
) -> None:
    """
    Decisions and final rows are those of the whole, or left open, and no applier stops.

    Recordings judge the functions that reject whole transactions (`tests/conflict/judge/test_cuts.py`): where
    these are mixed with others, effects on made-up rows do not tell which transaction was rejected.
    """
    setups = configuration(setting, roles, binlog_type).setups.at_end
    functions = [setup.function for each in setups.values() for setup in each.values() if setup.function]
    assume(not any(function.spec.transactional for function in functions))
    history = truthful(make_history(seed, steps, complete=complete, roles=roles), setups)
    whole = resolve(history, setups)
    cut, shown = cut_history(history, whole, cuts)
    rest = resolve(cut, setups, shown=shown)
    expected, found = decisions(whole), decisions(rest)
    assert {
        operation: each
        for operation, each in found.items()
        if each[0] is not Verdict.CANNOT_TELL and expected[operation] != each
    } == {}
    for name, result in rest.clusters.items():
        assert result.stop is None  # as in the whole, which is truthful
        for table, rows in result.rows.items():
            held = Counter(map(repr, whole.clusters[name].rows[table]))
            assert Counter(map(repr, rows)) - held == Counter()


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(0, 120),
    setting=st.integers(0, len(SETTINGS) - 1),
    roles=st.sampled_from([*[USUAL_ROLES] * 4, *ROLES]),
    complete=st.booleans(),
)
@settings(max_examples=50, derandomize=True)
def test_nothing_is_inferred_from_a_whole_log(
    seed: int, steps: int, setting: int, roles: tuple[Role, Role], complete: bool
) -> None:
    """The applier alone decides the same; only what the binlogs leave open is not found by it."""
    setups = configuration(setting, roles, 7).setups.at_end
    history = make_history(seed, steps, complete=complete, roles=roles)
    inferred = resolve(history, setups)
    for result in inferred.clusters.values():
        result.undecided.clear()
        result.further_rows.clear()
    assert inferred == plain_resolve(history, setups)
