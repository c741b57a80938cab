"""`compare` with a rule in Python: the figures of the reference engine are those of the kernels."""

import tempfile
from pathlib import Path

import attrs
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import conflict
from conflict.engine.columnar.beyond_kernels import compares_reflected
from conflict.engine.ledger.layout import ResultOptions
from conflict.history.grid.epoch_files import epochs_table, read_schedule
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import log_part
from conflict.history.model import History
from conflict.history.run import Run
from conflict.history.scheduling.summaries import Summary
from conflict.history.tasks import in_process
from conflict.history.timeline import Transaction
from conflict.judge.case import ConflictCase
from conflict.resolvers.resolver import resolver
from conflict.rules.decision import Decision
from conflict.rules.functions import Cell, ConflictFunction, FunctionSpec, judge
from conflict.rules.replication_table import Role
from conflict.rules.seen import FoundRow, IncomingChange
from conflict.runs.resolving.resolve_job import SettledHistory, settle_history
from conflict.runs.rows.task_inputs import LogPart
from conflict.whatif.comparing.by_reference import figures_by_reference
from conflict.whatif.comparing.compare_job import compare_settled
from conflict.whatif.comparing.figures import Figures
from conflict.whatif.comparing.pairs import Pair, Policy
from conflict.whatif.comparing.trials import Trial
from tests.conflict.random_histories import BINLOG_TYPES, ROLES, SETTINGS, USUAL_ROLES, configuration, make_history
from tests.conflict.whatif.comparing.recorded import compared
from tests.conflict.written_histories import write_history
from tests.corpora import DEMO, RECORDINGS
from tests.examples import examples

NEWEST = FunctionSpec("NEWEST", "Ndb_conflict_fn_NEWEST", Cell.AT_LEAST, Cell.AT_LEAST, Cell.AT_LEAST)
ROW = """
[[conflict_function]]
name = "NEWEST"
write = "at least"
update = "at least"
delete = "at least"
"""
NEEDS = {each.name.split("_")[0].lower(): f"column {image.value}" for each, image in NEWEST.needs.items()}
RULE = "tests.conflict.whatif.comparing.test_by_reference:newest"
AS_IT_IS = Pair(Policy("as it is", configured=True))


@resolver(name="mine", column=True, needs=NEEDS)
def newest(row: FoundRow, change: IncomingChange) -> Decision:
    """Decide as the row of cells does."""
    return judge(NEWEST.cell(change.operation), row, change)


def counted(figures: Figures) -> Figures:
    """Return figures with the counters that counted, that of the rule under the name of the row's."""
    counters = {
        name: {key.lower().replace("mine", "newest"): value for key, value in own.items() if value}
        for name, own in figures.counters.items()
    }
    return attrs.evolve(figures, counters=counters)


def in_kernels(history: History, run: Run, pairs: list[Pair]) -> tuple[SettledHistory, list[Figures | str]] | None:
    """Compare pairs on a History; None if the kernels do not resolve it."""
    with tempfile.TemporaryDirectory() as folder:
        grid, out = Folder(f"{folder}/history"), Folder(f"{folder}/out")
        manifest = write_history(history, run.numbers, grid)
        for cluster in history.clusters:
            epochs = sorted({each.epoch for each in cluster.timeline if isinstance(each, Transaction)})
            summaries = [Summary(number, (), (), committed=number & 2**40 - 1) for number in epochs]
            grid.write_table(log_part("epochs", cluster.name, 0), epochs_table(summaries))
        part, options = (LogPart(), read_schedule(grid, list(manifest.clusters)), manifest), ResultOptions()
        settled = settle_history(in_process, run, grid, out, options, use_evidence=False, part=part)
        if not isinstance(settled, SettledHistory):
            return None
        return settled, compare_settled(in_process, settled.job.run, settled.applied, pairs, history=history)


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(0, 80),
    setting=st.integers(0, len(SETTINGS) - 1),
    roles=st.sampled_from([*[USUAL_ROLES] * 4, *ROLES]),
    binlog_type=st.sampled_from(BINLOG_TYPES),
    complete=st.booleans(),
)
@examples(4)
# A replica that was set back applies an epoch twice in one own epoch.
@example(seed=81992, steps=26, setting=0, roles=USUAL_ROLES, binlog_type=7, complete=True)
def test_any_function_by_both(
    seed: int, steps: int, setting: int, roles: tuple[Role, Role], binlog_type: int, complete: bool
) -> None:
    """What the kernels count under the functions of a run, the reference engine counts."""
    run = configuration(setting, roles, binlog_type)
    assume(not compares_reflected(run))  # the reference engine resolves these as a whole
    history = make_history(seed, steps, complete=complete, roles=roles)
    found = in_kernels(history, run, [AS_IT_IS])
    if found is not None and isinstance(found[1][0], Figures):
        assert figures_by_reference(history, Trial(AS_IT_IS, found[0].job.run.clusters)) == found[1][0]


@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(0, 80), complete=st.booleans())
@examples(4)
def test_a_row_of_cells_as_a_rule(seed: int, steps: int, complete: bool) -> None:
    """On a random History, stops included."""
    run = configuration(0)
    policies = [Policy(spec.name, ConflictFunction(spec, "x")) for spec in (NEWEST, newest.spec)]
    found = in_kernels(make_history(seed, steps, complete=complete), run, list(map(Pair, policies)))
    assert found is not None
    row, rule = found[1]
    assert isinstance(row, Figures)
    assert isinstance(rule, Figures)
    same = {name: attrs.evolve(each, message="") for name, each in row.stops.items()}
    assert {name: attrs.evolve(each, message="") for name, each in rule.stops.items()} == same
    assert attrs.evolve(counted(rule), stops={}) == attrs.evolve(counted(row), stops={})


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """Return the run of the demo with the row of cells."""
    for file in DEMO.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    run = tmp_path / "run.toml"
    run.write_text(run.read_text() + ROW)
    return run


def test_the_demo(demo: Path) -> None:
    """The rule has the figures of the row, and others are as without it."""
    alone = conflict.compare(demo, functions=["NEWEST(x)", "OVERWRITE"])
    beside = conflict.compare(demo, functions=[f"{RULE}(x)", "NEWEST(x)", "OVERWRITE"])
    found = {row.function: row for row in beside.rows}
    rule = found.pop("mine(x)")
    assert rule.figures is not None
    row = found["NEWEST(x)"].figures
    assert row is not None
    assert counted(rule.figures) == counted(row)
    assert list(found.values()) == list(alone.rows)


def test_a_rule_that_is_configured(demo: Path) -> None:
    """It is the pair that is used, with the figures of the row; functions of the server are tried beside it."""
    found = []
    for name, table in (("NEWEST", ROW), ("mine", f'\n[[conflict_function]]\nrule = "{RULE}"\n')):
        run = demo.with_name(f"{name}.toml")
        run.write_text(demo.read_text().replace(ROW, table).replace("NDB$EPOCH()", f"{name}(x)"))
        rows = {row.function: row for row in conflict.compare(run, functions=["NDB$MAX(x)"]).rows}
        used = rows[f"{name}(x)"]
        assert used.used
        other = rows["NDB$MAX(x)"].figures
        assert used.figures is not None
        assert other is not None
        found.append((counted(used.figures), counted(other)))
    assert found[0] == found[1]


def test_another_format() -> None:
    """A rule is tried in that of the log alone, and it is said so; the kernels try both."""
    case = ConflictCase.load(RECORDINGS / "conflict" / "max/upd_upd_a_first_type7")
    found = compared(case, "last_writer,LOWEST(x)", (9,))
    assert {(row.function, row.binlog_type) for row in found.rows if row.error} == {("last_writer()", "9")}
    (said,) = {row.error for row in found.rows if row.error}
    assert said == (
        "a rule in Python is called by the reference engine, and it is tried in the format of the log alone"
    )
