"""Rules of one's own in the reference engine: what they see, merges, and rows of cells written as rules."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conflict
from conflict.config.configuration import Configuration
from conflict.engine.reference.replay import resolve
from conflict.errors import ConfigurationError
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.resolvers.resolver import resolver
from conflict.rules.decision import Decision, Verdict
from conflict.rules.functions import FUNCTIONS, Cell, FunctionSpec, judge
from conflict.rules.replication_table import ReplicationRow
from conflict.rules.seen import FoundRow, IncomingChange
from conflict.whatif.diverging.retelling import TakenStep, retell
from conflict.whatif.diverging.scope import Scope
from conflict.whatif.diverging.steps import Apply, Commit, Load, RowWish
from ndb_formats.events.rows_event import Operation
from ndb_formats.types.values import ABSENT
from tests.conflict.engine.columnar.both_engines import by_kernels, by_reference
from tests.conflict.random_histories import configuration, make_history

UPDATE = RowWish(0, Operation.UPDATE_ROW, 0)
CELLS = [
    (Cell.REJECT_IF_PRESENT, Cell.GREATER, Cell.EQUAL),
    (Cell.AT_LEAST, Cell.AT_LEAST, Cell.AT_LEAST),
    (Cell.GREATER, Cell.LESS, Cell.REJECT_IF_MISSING),
    (Cell.APPLY, Cell.EQUAL, Cell.APPLY),
]


def with_function(spec: FunctionSpec) -> Run:
    """Return a run of random Histories in which one table has a function of one's own."""
    given = configuration(0).configuration
    rows = (ReplicationRow("db", "judged", 0, 7, f"{spec.name}(x)"), ReplicationRow("db", "other", 0, 7, None))
    made: Configuration = attrs.evolve(given, replication=rows, functions=(*FUNCTIONS, spec))
    return Run(made)


@pytest.mark.parametrize("cells", CELLS)
@settings(max_examples=6)
@given(seed=st.integers(0, 10_000))
def test_a_row_of_cells_as_a_rule(cells: tuple[Cell, Cell, Cell], seed: int):
    """The same cells, in Python: outcomes, rows, counters and exceptions are those of the row, on both engines."""
    row = FunctionSpec("OWN", "Ndb_conflict_fn_own", *cells)
    kinds = {each.name.split("_")[0].lower(): "column " + image.value for each, image in row.needs.items()}

    @resolver(name="OWN", column=True, needs=kinds)
    def rule(found: FoundRow, change: IncomingChange) -> Decision:
        return judge(row.cell(change.operation), found, change)

    own = attrs.evolve(rule.spec, counter=row.counter)
    made = make_history(seed, 25, complete=True)
    compiled, called = with_function(row), with_function(own)
    by_row = by_reference(made, compiled)
    assert by_reference(made, called) == by_row
    if seed % 5 == 0:
        assert by_kernels(made, compiled, in_process, buckets=1, epochs_per_segment=9) == by_row


def walk(rule: Any, *steps: Any) -> list[TakenStep]:
    """Return what two clusters do under a resolver, after row 1 was loaded with v = 0."""
    scope = Scope(f"{rule.name}()", 7, functions=(*FUNCTIONS, rule.spec))
    return retell(scope, [Load(1), *steps])


def test_what_a_rule_sees():
    """The row as the other cluster left it, the change, and who made both when."""
    seen: list[tuple[FoundRow, IncomingChange]] = []

    @resolver
    def watch(row: FoundRow, change: IncomingChange) -> Decision:
        seen.append((row, change))
        return conflict.APPLY

    walk(watch, Commit(0, (UPDATE,)), Commit(1, (UPDATE,)), Apply(0))
    row, change = seen[-1]
    assert (row.exists, row.local, row.unseen, row.site, row.committed) == (True, True, True, 1, 2)
    assert dict(row.values) == {"k": 1, "v": 1}
    assert (change.kind, change.site, change.committed, change.key) == ("update", 2, 3, ("k",))
    assert (dict(change.old), dict(change.new)) == ({"k": 1, "v": 0}, {"k": 1, "v": 2})
    assert (change.old["v"], row.value) == (0, None)


def test_a_column_that_an_image_lacks():
    """It is ABSENT, and not NULL: under type 6, an update carries what it sets."""
    seen = []

    @resolver
    def watch(row: FoundRow, change: IncomingChange) -> Decision:  # noqa: ARG001  # a resolver takes both
        seen.append(change)
        return conflict.APPLY

    scope = Scope("watch()", 6, columns=2, functions=(*FUNCTIONS, watch.spec))
    retell(scope, [Load(1), Commit(0, (UPDATE,)), Apply(1)])
    assert (seen[-1].new["v"], seen[-1].new["w"]) == (1, ABSENT)


def test_a_merge():
    """It writes its columns, is an outcome of its own, moves no counter, and refreshes nothing."""

    @resolver
    def always_9(row: FoundRow, change: IncomingChange) -> Decision:  # noqa: ARG001  # a resolver takes both
        return conflict.merge(v=9) if row.exists else conflict.APPLY

    taken = walk(always_9, Commit(0, (UPDATE,)), Apply(1))
    (outcome,) = taken[-1].events[-1].outcomes
    assert (outcome.verdict, outcome.merged and outcome.merged.by_name()) == (Verdict.MERGED, {"k": 1, "v": 9})
    assert [each.name for each in taken[-1].events[-1].effects.values()] == ["CHANGED"]


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ({"k": 5}, "function f merges column k, which is no column of d.t besides the key"),
        ({"w": 5}, "function f merges column w, which is no column of d.t besides the key"),
        ({"v": "many"}, "function f merges v = 'many', which no int holds"),
        ({"v": 2**40}, "which no int holds"),
    ],
)
def test_a_merge_that_cannot_be(written: dict[str, Any], complaint: str):
    """Function, column and value are named."""
    made = resolver(name="f")(lambda row, change: conflict.merge(written) if row.exists else conflict.APPLY)
    with pytest.raises(ConfigurationError) as caught:
        walk(made, Commit(0, (UPDATE,)), Apply(1))
    assert complaint in str(caught.value)


def test_times_and_sites_go_through_replays():
    """Without times, `resolve` gives None; a made-up History has no epochs that committed at a time."""
    seen = []

    @resolver(name="OWN", column=True)
    def watch(row: FoundRow, change: IncomingChange) -> Decision:
        seen.append((row.committed, change.committed, change.site))
        return conflict.IGNORE

    resolve(make_history(3, 40, complete=True), with_function(watch.spec).setups.at_start)
    assert {each[:2] for each in seen} == {(None, None)}
    assert {each[2] for each in seen} <= {1, 2}
