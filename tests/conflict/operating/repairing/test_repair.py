"""`repair`: rows that differ become equal by a rule, or are left to review with a reason."""

import json
import shutil
from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import conflict
from conflict.config.configuration import Span
from conflict.config.run_file import GivenSchedule, RunFile
from conflict.errors import ConfigurationError, HistoryError
from conflict.judge.case import ConflictCase
from conflict.operating.repairing import ended_run
from conflict.operating.repairing.ended_run import EndedRun, ended_as
from conflict.operating.repairing.equal import equal_rows
from conflict.operating.repairing.plan import Plan
from conflict.operating.repairing.plan_files import write_plan
from conflict.operating.repairing.planning import Planned, Wanted, planned
from conflict.operating.repairing.proof import prove
from conflict.operating.repairing.reading_lost import LOST, read_lost
from conflict.operating.repairing.reapply import lost_in_history
from conflict.operating.repairing.statements import RepairedRow
from conflict.operating.repairing.winners import Rule, rules_of
from conflict.results.conflicts import ALL
from conflict.results.result import Result
from conflict.runs.run_inputs import run_of
from ndb_formats.events.rows_event import Operation
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO, RECORDINGS, SHARED

SAMPLE = [
    RECORDINGS / "conflict" / "epoch" / "random_28_type8",
    RECORDINGS / "conflict" / "max_del_win_ins" / "random_22_type2",
    RECORDINGS / "conflict" / "old" / "random_26_type6",
]
# A row of it is missing on A alone, and others differ in their values.
DELETES = RECORDINGS / "conflict" / "max_del_win_ins" / "random_22_type2"
KINDS = ("conflict/*/*", "lives/*", "everyday/*/*", "operations/*", "operations/*/*")


def folders(root: Path) -> list[Path]:
    """Return all recordings of a folder."""
    return sorted({path.parent for kind in KINDS for path in root.glob(f"{kind}/scenario.json")})


def ended(folder: Path, out: Path, span: Span | None = None) -> tuple[Result, EndedRun]:
    """Return the result of a recording, and its clusters as they ended."""
    case = ConflictCase.load(folder)
    configuration = case.configuration()
    if span is not None:
        configuration = attrs.evolve(configuration, span=span)
    run = RunFile(case.path / "run.toml", configuration, GivenSchedule(), ())
    result = conflict.resolve(run, out=out, engine="reference", policy="needs")
    return result, ended_as(result, run_of(run), LOST.empty_table())


def plan_of(result: Result, end: EndedRun, wins: str) -> Planned:
    """Return the plan by one rule for all tables."""
    rules = rules_of({"*": wins}, end.clusters, result.tables, deletes=True)
    return planned(end, Wanted(rules, rows_per_transaction=3))


def assert_equal_but_review(folder: Path, out: Path) -> None:
    """
    By every rule, each row that differs is repaired or reviewed, and the proof holds.

    What a statement leaves is what the result says of the winning cluster's row.
    """
    result, end = ended(folder, out)
    differing = set(end.differing)
    for wins in (*end.clusters, "newest", "greatest(x)"):
        plan = plan_of(result, end, wins)
        assert plan.proof.holds
        repaired = {each.repaired.row for _, found in plan.files for each in found}
        reviewed = {each.row for each in plan.reviewed}
        assert repaired.isdisjoint(reviewed)
        assert differing <= repaired | reviewed
        assert repaired <= differing
        assert plan.proof.differing <= reviewed
        for cluster, statements in plan.files:
            for each in statements:
                winner = end.other(cluster)
                assert wins in (winner, "newest", "greatest(x)")
                row = each.repaired
                _assert_as_on(result, end, winner, row.name, row.row, row.after)


def _assert_as_on(result: Result, end: EndedRun, winner: str, name: str, row: tuple[str, bytes], after: object) -> None:
    """A row becomes what the files of the result have of it on the winning cluster; missing if it is missing there."""
    table = end.table(winner, name)
    assert table is not None
    state = end.state(winner, row)
    assert (after is None) == (state is None)
    if state is None:
        return
    assert isinstance(after, dict)
    shared = [place for place in table.columns if place in after]
    values = {table.columns[p].name: table.layout.codecs[p].decode(after[p]) for p in shared if after[p] is not None}
    held = result.rows(winner, name)
    for column, value in values.items():
        if pa.types.is_integer(held.schema.field(column).type) or pa.types.is_string(held.schema.field(column).type):
            held = held.filter(pa.compute.equal(held[column], pa.scalar(value, held.schema.field(column).type)))
    assert len(held) == 1


def both_plans(folder: Path, out: Path, first: dict[str, int] | None = None) -> list[Plan]:
    """Return the plans of the results of both engines; of that of the kernels, only some rows are replayed."""
    case = ConflictCase.load(folder)
    configuration = case.configuration()
    if first is not None:
        configuration = attrs.evolve(configuration, span=Span(first=first, empty=False))
    run, found = RunFile(case.path / "run.toml", configuration, GivenSchedule(), ()), []
    for engine in ("reference", "local"):
        result = conflict.resolve(run, out=out / engine, engine=engine, policy="needs")
        lost = read_lost(result, ALL)
        end = ended_as(result, run_of(run), lost)
        rules = rules_of({"*": "newest"}, end.clusters, result.tables, deletes=True)
        wanted = Wanted(rules, True, lost_in_history(end, lost), True, True, rows_per_transaction=3)
        found.append(Plan(result, wanted, end, planned(end, wanted)))
    return found


def assert_same_plans(plans: list[Plan]) -> None:
    """Statements, what is left to review, the rows of both clusters, what appliers decide, and the steps are equal."""
    first, second = plans
    assert first.statements.equals(second.statements)
    assert first.review.equals(second.review)
    assert first.document()["tables"] == second.document()["tables"]
    assert first.planned.proof.judged == second.planned.proof.judged
    assert first.steps == second.steps


@pytest.mark.parametrize("folder", SAMPLE, ids=lambda path: path.name)
def test_results_of_the_kernels(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their rows are replayed as far as they can be repaired; the plan is that of a replay of all rows."""
    whole = ended_run.replay_in_memory
    replays: list[object] = []
    monkeypatch.setattr(ended_run, "replay_in_memory", lambda *given: replays.append(given) or whole(*given))
    assert_same_plans(both_plans(folder, tmp_path))
    assert len(replays) == 1


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_results_of_other_rules_are_refused(engine: str, tmp_path: Path) -> None:
    """As many rows differ, but what appliers did, or the rows there are, is not what the binlogs give."""
    result = conflict.resolve(DEMO / "run.toml", out=tmp_path / "result", engine=engine)
    one = next(name for name, count in result.counters["A"].items() if count)
    counters = {**result.counters, "A": {**result.counters["A"], one: result.counters["A"][one] + 1}}
    rows = {**result.run["rows"], "A": {**result.run["rows"]["A"], "cft.t1": 3}}
    other = attrs.evolve(result, counters=counters, run={**result.run, "rows": rows})
    with pytest.raises(HistoryError, match="are not those that the reference engine derives"):
        conflict.repair(other, {"*": "A"})


def test_results_of_the_kernels_from_the_middle(tmp_path: Path) -> None:
    """What is not known is to be reviewed in the same way."""
    plans = both_plans(DELETES, tmp_path, first={"B": 4037269258244})
    assert len(plans[0].review)
    assert_same_plans(plans)


@pytest.mark.slow
@pytest.mark.corpus("conformance")
def test_results_of_the_kernels_of_many_recordings(tmp_path: Path) -> None:
    """Every fourth recording of two clusters: keys, stops, definitions that change, rows without a key."""
    seen = 0
    for folder in folders(SHARED / "conformance")[::4]:
        if len(ConflictCase.load(folder).configuration().clusters) == 2:
            shutil.rmtree(tmp_path / "results", ignore_errors=True)
            assert_same_plans(both_plans(folder, tmp_path / "results"))
            seen += 1
    assert seen > 100


@pytest.mark.parametrize("folder", SAMPLE, ids=lambda path: path.name)
def test_rows_become_equal(folder: Path, tmp_path: Path) -> None:
    """Three recordings of random statements, at every commit."""
    assert_equal_but_review(folder, tmp_path / "result")


@pytest.mark.slow
@pytest.mark.parametrize("folder", folders(RECORDINGS), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_rows_of_bundled_recordings_become_equal(folder: Path, tmp_path: Path) -> None:
    """Every bundled recording of two clusters."""
    if len(ConflictCase.load(folder).configuration().clusters) == 2:
        assert_equal_but_review(folder, tmp_path / "result")
    else:
        with pytest.raises(ConfigurationError, match="a repair is made between two"):
            ended(folder, tmp_path / "result")


@pytest.mark.slow
@pytest.mark.corpus("conformance")
def test_rows_of_all_recordings_become_equal(tmp_path: Path) -> None:
    """Every recording of two clusters in the corpus."""
    seen = 0
    for folder in folders(SHARED / "conformance"):
        if len(ConflictCase.load(folder).configuration().clusters) == 2:
            shutil.rmtree(tmp_path / "result", ignore_errors=True)
            assert_equal_but_review(folder, tmp_path / "result")
            seen += 1
    assert seen > 400


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of the demo."""
    out = tmp_path_factory.mktemp("repair") / "result"
    conflict.resolve(DEMO / "run.toml", out=out, engine="reference")
    return out


def test_the_row_of_the_demo(demo: Path, tmp_path: Path) -> None:
    """One row differs, as its binlogs show; A wins, so B gets its values, if B still has its own."""
    plan = conflict.repair(demo, {"*": "A"}, out=tmp_path / "plan")
    (row,) = plan.statements.to_pylist()
    assert (row["file"], row["cluster"], row["table"], row["key"]) == ("1-B.sql", "B", "cft.plain", "id=3")
    assert row["sql"] == (
        "UPDATE `cft`.`plain` SET `x` = 141, `n` = 'larch20' "
        "WHERE `id` = 3 AND `x` <=> 158 AND CAST(`n` AS BINARY) <=> 'yew1'"
    )
    assert plan.proved
    assert not len(plan.review)
    text = (tmp_path / "plan" / "1-B.sql").read_text("utf-8")
    assert f"\n{row['sql']} AND @ndb_conflict_done = 0;\n" in text
    assert sorted(path.name for path in (tmp_path / "plan").iterdir()) == [
        *("1-B.sql", "plan.json", "review.csv", "review.parquet", "statements.parquet")
    ]
    assert pq.read_table(tmp_path / "plan" / "statements.parquet").to_pylist() == [row]


def test_the_newest_change_wins(demo: Path) -> None:
    """B's row of the demo was written last by an update of A, which committed after the insert of B that A holds."""
    plan = conflict.repair(str(demo), "cft.plain=newest")
    (row,) = plan.statements.to_pylist()
    assert (row["cluster"], "B wins" in row["why"]) == ("A", True)


def test_a_plan_that_does_not_come_out(tmp_path: Path) -> None:
    """The proof finds a row that has moved, a statement without effect, and one with another effect than planned."""
    _, end = ended(DELETES, tmp_path / "result")
    (row, *_) = [
        row for row in end.differing if end.doubt(row) is None and None not in map(end.state, end.clusters, [row, row])
    ]
    repaired = dict(equal_rows(end, [Rule("*", "A")]))[row]
    assert isinstance(repaired, RepairedRow)
    assert prove(end, [("B", [[repaired]])]).holds
    moved = attrs.evolve(repaired, before=repaired.after)
    idle = attrs.evolve(repaired, after=repaired.before)
    twice = [repaired, repaired]
    for rows, reason in (([moved], "would have changed"), ([idle], "change nothing"), (twice, "would have changed")):
        proof = prove(end, [("B", [rows])])
        assert not proof.holds
        assert reason in proof.failed[row]
    half = attrs.evolve(repaired, written=frozenset())
    assert "would still differ" in prove(end, [("B", [[half]])]).failed[row]


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ((), "no rule is for it"),
        ("*=review", "wants it reviewed"),
        ("cft.t*=A", "no rule is for it"),
        ("*=greatest(n)", "n is varchar"),
        ("*=greatest(y)", "the table has no column y"),
    ],
)
def test_what_no_rule_decides_is_reviewed(demo: Path, rules: str, reason: str) -> None:
    """Never in silence: the row is in the table of those to review, with why."""
    plan = conflict.repair(str(demo), rules)
    (row,) = plan.review.to_pylist()
    assert (row["table"], row["key"]) == ("cft.plain", "id=3")
    assert reason in row["reason"]
    assert not len(plan.statements)


@pytest.mark.parametrize(("value", "wins"), [(141, "A"), (158, "A"), (1, "B")])
def test_rules_of_a_file_ask_for_values(demo: Path, tmp_path: Path, value: int, wins: str) -> None:
    """A rule with values is for rows that have them on either cluster; else the next one decides."""
    (tmp_path / "rules.toml").write_text(
        f'[[rule]]\ntable = "cft.*"\nwhen = {{ x = {value} }}\nwins = "A"\n[[rule]]\ntable = "*"\nwins = "B"\n'
    )
    plan = conflict.repair(str(demo), str(tmp_path / "rules.toml"))
    (row,) = plan.statements.to_pylist()
    assert f"{wins} wins" in row["why"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("A", "is not understood"),
        ("*=C", "C is not known"),
        ("shop.*=A", "is for no table"),
        ("missing.toml", "missing.toml"),
    ],
)
def test_rules_that_are_wrong(demo: Path, rules: str, message: str) -> None:
    """The message names the rule, and what to give."""
    with pytest.raises(ConfigurationError, match=message):
        conflict.repair(str(demo), rules)


def test_deletes_are_asked_for(tmp_path: Path) -> None:
    """A row that the winner lacks is deleted only if the user asks for that."""
    result, end = ended(DELETES, tmp_path / "result")
    lacking = [row for row in end.differing if end.doubt(row) is None and end.state("A", row) is None]
    assert lacking
    with_deletes = plan_of(result, end, "A")
    without = planned(end, Wanted(rules_of({"*": "A"}, end.clusters, result.tables, deletes=False)))
    deleted = [
        each.repaired.row
        for _, found in with_deletes.files
        for each in found
        if each.repaired.operation is Operation.DELETE_ROW
    ]
    assert deleted == lacking
    assert {each.row for each in without.reviewed if "deletes are not asked for" in each.reason} == set(lacking)


def test_rows_that_are_not_known_are_reviewed(tmp_path: Path) -> None:
    """In a log from the middle, a row that nothing shows is never repaired."""
    span = Span(first={"A": 3822520893449}, empty=False)
    result, end = ended(RECORDINGS / "conflict" / "max" / "random_27_type7", tmp_path / "result", span)
    assert end.may_differ
    reviewed = {each.row for each in plan_of(result, end, "A").reviewed}
    assert set(end.may_differ) <= reviewed


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_results_of_a_part_of_the_logs(engine: str, tmp_path: Path) -> None:
    """The run is replayed from the epochs at which the result starts, so what it does not know is reviewed."""
    start = {"B": 5317169512466}
    result = conflict.resolve(DEMO / "run.toml", out=tmp_path / "result", engine=engine, start_epoch=start)
    plan = conflict.repair(result, {"*": "A"})
    assert not len(plan.statements)
    reasons = set(plan.review["reason"].to_pylist())
    assert {"not all columns of the row are known on A", "not all columns of the row are known on B"} <= reasons
    doubtful = sum(each["may_differ"] for each in plan.document()["tables"].values())
    assert 0 < doubtful <= len(plan.review)
    said = repr(plan)
    assert "row that may differ" in said
    assert "A row that may differ is not known in full" in " ".join(said.split())


def test_a_binlog_that_is_cut_short(tmp_path: Path) -> None:
    """Rows of changes that an applier had not reached differ for that reason alone, and are reviewed."""
    shutil.copytree(DEMO, tmp_path / "demo")
    log = tmp_path / "demo" / "B.binlog.000001"
    log.write_bytes(log.read_bytes()[:9000])
    result = conflict.resolve(tmp_path / "demo" / "run.toml", out=tmp_path / "result", engine="reference")
    plan = conflict.repair(result, {"*": "newest"})
    assert plan.proved
    assert any("had not applied a change of the row" in reason for reason in plan.review["reason"].to_pylist())
    assert "could not be read to the end" in repr(plan)


def test_binlogs_that_contradict_the_result(tmp_path: Path) -> None:
    """Nothing is repaired: what the rows are is not known."""
    shutil.copytree(DEMO, tmp_path / "demo")
    run = tmp_path / "demo" / "run.toml"
    run.write_text("\n".join(line for line in run.read_text("utf-8").splitlines() if "conflict_fn" not in line))
    result = conflict.resolve(run, out=tmp_path / "result", engine="reference")
    plan = conflict.repair(result, {"*": "A"})
    assert not len(plan.statements)
    assert set(plan.review["reason"].to_pylist()) == {"the binlogs contradict the result"}


def test_a_binlog_that_is_gone(tmp_path: Path) -> None:
    """Is said, and nothing is written."""
    shutil.copytree(DEMO, tmp_path / "demo")
    result = conflict.resolve(tmp_path / "demo" / "run.toml", out=tmp_path / "result", engine="reference")
    (tmp_path / "demo" / "B.binlog.000001").unlink()
    with pytest.raises(HistoryError, match="is missing"):
        conflict.repair(result, {"*": "A"}, out=tmp_path / "plan")
    assert not (tmp_path / "plan").exists()


def test_a_plan_is_replaced_only_if_asked(demo: Path, tmp_path: Path) -> None:
    """And a folder that holds something else is never replaced."""
    target = tmp_path / "plan"
    conflict.repair(demo, {"*": "A"}, out=target)
    with pytest.raises(ConfigurationError, match="exists already"):
        conflict.repair(demo, {"*": "B"}, out=target)
    conflict.repair(demo, {"*": "B"}, out=target, force=True)
    assert (target / "1-A.sql").exists()
    assert not (target / "1-B.sql").exists()
    (target / "plan.json").unlink()
    with pytest.raises(ConfigurationError, match=r"holds no plan\.json"):
        conflict.repair(demo, {"*": "A"}, out=target, force=True)


def test_a_plan_without_a_proof(demo: Path, tmp_path: Path) -> None:
    """It is not written unless the user insists, and then says so first."""
    plan = conflict.repair(demo, {"*": "A"})
    ((_, (statement,)),) = plan.planned.files
    proof = attrs.evolve(plan.planned.proof, changed_besides=[statement.repaired.row])
    failed = attrs.evolve(plan, planned=attrs.evolve(plan.planned, proof=proof))
    with pytest.raises(ConfigurationError, match=r"cft\.plain id=3 changed besides\. Nothing was written"):
        write_plan(failed, tmp_path / "plan", force=False, unproved=False)
    assert not (tmp_path / "plan").exists()
    write_plan(failed, tmp_path / "plan", force=False, unproved=True)
    first = (tmp_path / "plan" / "1-B.sql").read_text("utf-8").splitlines()[0]
    assert first == "-- WARNING: the proof of this plan failed. It does not do what it is for."


def test_what_is_told(demo: Path, tmp_path: Path) -> None:
    """On the terminal, in the document, in a notebook."""
    document = tmp_path / "plan.json"
    code, output = invoke("repair", demo, "--rule", "*=A", "--json", document)
    said = " ".join(output.split())
    assert code == 0
    assert "1 row can be made equal, and 0 rows left to review." in said
    assert "nothing else changed, and no row differs" in said
    told = json.loads(document.read_text("utf-8"))
    assert told["proved"] is True
    assert told["tables"]["cft.plain"]["differing_before"] == 1
    assert told["tables"]["cft.plain"]["differing_after"] == 0
    plan = conflict.repair(demo, {"*": "A"})
    assert "1 row can be made equal" in repr(plan)
    unsure = attrs.evolve(plan, not_listed=["Of 2 more changes it is not known whether they were rejected."])
    assert "Of 2 more changes it is not known" in repr(unsure)
    assert unsure.document()["not_listed"] == list(unsure.not_listed)
    assert "<table" in plan._repr_html_()
