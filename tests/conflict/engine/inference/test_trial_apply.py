"""An epoch tried row by row does what whole passes over it do."""

from collections.abc import Iterator
from random import Random

import attrs
from hypothesis import given
from hypothesis import strategies as st

from conflict.engine.inference.background import Background, background_of, epochs_known
from conflict.engine.inference.observed import ObservedPass
from conflict.engine.inference.trial_apply import TrialApply
from conflict.engine.reference.applier import effects_of
from conflict.engine.reference.row_store import RowKey
from conflict.history.shown_effects import Effect
from conflict.history.timeline import EpochApply, Position
from conflict.rules.replication_table import Role
from tests.conflict.engine.columnar.test_early_rows import with_moments
from tests.conflict.engine.inference.test_moments import EARLY
from tests.conflict.histories import setups
from tests.conflict.worlds import random_steps, world
from tests.examples import examples

FUNCTIONS = ["NDB$MAX(x)", "NDB$EPOCH()", "NDB$EPOCH_TRANS()", "NDB$EPOCH2()", "NDB$EPOCH2_TRANS()"]
Moments = dict[RowKey, Position]


def whole_pass(here: Background, apply: EpochApply, source: Background, moments: Moments) -> ObservedPass:
    """Make the passes of an epoch apply over all of its rows; leave the rows as the last one did."""
    early = {key: here.row_at(key, after) for key, after in moments.items()}
    entries = here.cluster.arriving(source.cluster, apply.foreign_epoch)
    rejected: frozenset[int] = frozenset()
    for _ in range(2):
        here.cluster.store.roll_back()
        current = ObservedPass(here.cluster, source.cluster.cluster, apply, rejected, early=early)
        for entry in entries:
            current.handle(entry)
        rejected = current.tracker.in_conflict()
        if not rejected:
            break
    return current


def differing(here: Background, apply: EpochApply, source: Background, moments: Moments) -> tuple[object, object]:
    """Return the rows that are not changed by an epoch, and those that cannot have been judged at their moments."""
    final = whole_pass(here, apply, source, moments)
    effects = effects_of(final)
    here.cluster.store.roll_back()
    changed = {key for key, effect in effects.items() if effect is Effect.CHANGED}
    rows = {entry.row for entry in here.cluster.arriving(source.cluster, apply.foreign_epoch)}
    return (rows | effects.keys()) - changed | final.locked, final.locked


def some_moments(here: Background, apply: EpochApply, source: Background, chance: Random) -> Iterator[Moments]:
    """Yield moments of some rows of an epoch, each before a change of its row."""
    rows = dict.fromkeys(entry.row for entry in here.cluster.arriving(source.cluster, apply.foreign_epoch))
    changes = {key: here.changes(key, (0, -1), (apply.epoch, apply.group)) for key in rows}
    candidates = {key: [(epoch, group - 1) for epoch, group in found] for key, found in changes.items() if found}
    for _ in range(6):
        yield {key: chance.choice(found) for key, found in candidates.items() if chance.random() < 0.5}


@examples(20, long=80)
@given(st.sampled_from(FUNCTIONS), st.integers(0, 2**32), st.integers(10, 60), EARLY)
def test_row_by_row(function: str, seed: int, count: int, early: list[int]) -> None:
    """Whatever the moments: the same rows differ, and the same moments are impossible."""
    both = function not in {"NDB$EPOCH()", "NDB$EPOCH_TRANS()"}
    roles = {"A": Role.PRIMARY, "B": Role.SECONDARY} if "EPOCH2" in function else {}
    made = world(function, only_first=not both, roles=roles)
    made.early = early
    made.run(random_steps(seed, count, "tn"))
    for cluster in (0, 1):
        made.close(cluster)
    known = with_moments(made, roles)
    tables, chance = setups(function, function if both else None), Random(seed)

    def visit(here: Background, apply: EpochApply, source: Background) -> None:
        entries = here.cluster.arriving(source.cluster, apply.foreign_epoch)
        if not entries:
            return
        shown = {entry.row: Effect.CHANGED for entry in entries}
        trial = TrialApply(here, source, apply, entries, shown)
        for moments in some_moments(here, apply, source, chance):
            found = trial.judged(moments)
            assert (found.differing, found.impossible) == differing(here, apply, source, moments)

    applies = {
        cluster.name: tuple(item for item in cluster.timeline if isinstance(item, EpochApply))
        for cluster in known.clusters
    }
    known = attrs.evolve(known, applies=applies)
    recorded: dict[str, dict[Position, dict[RowKey, Effect]]] = {cluster.name: {} for cluster in known.clusters}
    background_of(known, tables, recorded, epochs_known(known.links), visit)
