"""Recordings of everyday operations: several SQL nodes a cluster, and channels that moved."""

from collections import Counter
from pathlib import Path
from random import Random

import attrs
import pytest

from conflict.config.configuration import Span
from conflict.engine.ledger.layout import SKIPPED, skipped_path
from conflict.engine.ledger.resolution import ClusterResult
from conflict.explaining.events import EventKind
from conflict.explaining.explainer import Explainer
from conflict.history.grid.folder import Folder
from conflict.history.ingestion.logged_epochs import scan_epochs
from conflict.history.preparing.definitions_over_time import make_run
from conflict.judge.case import ConflictCase, find_recordings
from conflict.judge.judge import CaseStatus, judge_recording
from conflict.judge.judged_run import JudgedRun
from conflict.results.cause_kinds import CauseKind
from conflict.results.result import Result
from conflict.rules.replication_filter import ReplicationFilter
from conflict.runs.pipeline import ENGINES
from tests.corpora import RECORDINGS, SHARED

OPERATIONS = RECORDINGS / "operations"
BUNDLED = [found.case for found in find_recordings(OPERATIONS)]
# What is right from the logs alone; the other kinds are not built yet.
SHARED_KINDS = (
    *("channel_failover", "every_node_writes", "ring", "server_restart", "skip_counter"),
    *("live_compressed_workers", "live_compression", "live_no_batching", "live_workers"),
    *("filter_ignore_db_both", "filter_ignore_table", "filter_wild_do", "rewrite_db"),
)
SHARED_OPERATIONS = SHARED / "conformance" / "operations"


def cases(kind: str) -> list[str]:
    """Return the shared recordings of a kind."""
    folder = SHARED_OPERATIONS / kind
    found = [each.case for each in find_recordings(folder)] if folder.exists() else []
    return [f"{kind}/{case}" for case in found]


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("case", BUNDLED)
def test_an_engine_agrees_from_the_logs_of_all_nodes(case: str, engine: str) -> None:
    """Rows, exceptions with the SQL nodes at both ends of the channel and their own numbers, and counters."""
    (found,) = find_recordings(OPERATIONS / case)
    verdict = judge_recording(found, engine, use_steps=False)
    assert (verdict.status, verdict.detail) == (CaseStatus.PASS, "")


@pytest.mark.slow
@pytest.mark.corpus("conformance")
@pytest.mark.parametrize("case", [case for kind in SHARED_KINDS for case in cases(kind)])
def test_the_local_engine_agrees_with_shared_recordings(case: str) -> None:
    """All kinds that are right from the logs alone."""
    (found,) = find_recordings(SHARED_OPERATIONS / case)
    verdict = judge_recording(found, "local", use_steps=False)
    assert (verdict.status, verdict.detail) == (CaseStatus.PASS, "")


@pytest.mark.parametrize("case", [case for case in BUNDLED if case.startswith(("channel", "every"))])
def test_the_log_of_one_node_is_enough(case: str, tmp_path: Path) -> None:
    """Ids of the other SQL nodes are found from the epochs beside them: the result is the same."""
    loaded = ConflictCase.load(OPERATIONS / case)
    configuration = loaded.configuration()
    alone = tuple(attrs.evolve(each, servers=each.servers[:1]) for each in configuration.clusters)
    found = []
    for number, clusters in enumerate((configuration.clusters, alone)):
        out = Folder(str(tmp_path / str(number)))
        resolved = ENGINES["local"](make_run(attrs.evolve(configuration, clusters=clusters)), out)
        results = JudgedRun.read(loaded, out, resolved).results
        found.append((results, resolved.summary.counter_ranges))
        assert not resolved.contradicted
    assert found[0] == found[1]


def test_a_skip_is_said_and_explained(tmp_path: Path) -> None:
    """B stopped at a table that it lacks, and was made to skip the epoch: listed with its rows, and said in words."""
    loaded = ConflictCase.load(OPERATIONS / "skip_counter" / "skip_counter_epoch_type8")
    out = Folder(str(tmp_path / "out"))
    resolved = ENGINES["local"](make_run(loaded.configuration()), out)
    (skipped,) = resolved.summary.schedule.skipped
    epoch = next(step["epoch"] for step in loaded.scenario["steps"] if "INSERT INTO onlya" in str(step.get("sql")))
    assert (skipped.applier, skipped.source, skipped.foreign_epoch) == ("B", "A", epoch)
    rows = out.read_table(skipped_path("B"), SKIPPED).drop_columns(["identity"]).to_pylist()
    assert rows == [{"source": "A", "source_epoch": epoch, "table": "ops.t1", "operation": "UPDATE_ROW", "key": "k=2"}]
    explainer = Explainer(Result(out, resolved.to_json("local"), {}), resolved.run)
    story = explainer.row("ops.t1", "k=2")
    said = [event.sentence for event in story.events if event.kind is EventKind.NOT_APPLIED]
    assert f"B never applied epoch {epoch} of A, and applied later ones: it was skipped" in said


def test_what_a_filter_drops_is_explained(tmp_path: Path) -> None:
    """No change of A in the filtered table is said to have been judged on B."""
    loaded = ConflictCase.load(OPERATIONS / "filter_ignore_table" / "filter_ignore_table_epoch_trans_type7")
    out = Folder(str(tmp_path / "out"))
    resolved = ENGINES["local"](make_run(loaded.configuration()), out)
    assert not resolved.contradicted
    explainer = Explainer(Result(out, resolved.to_json("local"), {}), resolved.run)
    story = explainer.row("ops.t2", "a=1, b=y1")
    assert not [event for event in story.events if event.kind is EventKind.JUDGED and event.cluster == "B"]
    said = {event.sentence for event in story.events if event.kind is EventKind.NOT_APPLIED}
    assert "a filter of B drops the changes of ops.t2 (replicate_*)" in said


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("case", [case for case in BUNDLED if case.startswith("filter")])
def test_a_filter_that_is_not_given_is_the_likely_cause(case: str, engine: str, tmp_path: Path) -> None:
    """No other function is suspected, and the table is named with the cluster whose applier drops it."""
    configuration = ConflictCase.load(OPERATIONS / case).configuration()
    clusters = tuple(attrs.evolve(each, filter=ReplicationFilter()) for each in configuration.clusters)
    resolved = ENGINES[engine](make_run(attrs.evolve(configuration, clusters=clusters)), Folder(str(tmp_path)))
    assert resolved.contradicted
    ((cluster, tables),) = {(each.cluster, each.tables) for each in resolved.likely_causes}
    assert {each.kind for each in resolved.likely_causes} == {CauseKind.FILTER}
    assert (cluster, set(tables)) == (("B", {"ops.t2"}) if "ignore" in case else ("A", {"ops.t2", "ops.plain"}))


FILTERED = [
    found.case
    for found in find_recordings(RECORDINGS / "conflict")
    if not found.case.startswith(("parse", "replication_table"))
][::6]


@pytest.mark.parametrize("case", FILTERED)
def test_engines_agree_on_what_a_filter_leaves(case: str, tmp_path: Path) -> None:
    """Any recording, resolved as if one applier had filtered one of its tables, chosen by the name of the case."""
    loaded = ConflictCase.load(RECORDINGS / "conflict" / case)
    configuration, chance = loaded.configuration(), Random(case)
    tables = [table.full_name for table in configuration.data_schema.tables]
    clusters = list(configuration.clusters)
    place = chance.randrange(2)
    clusters[place] = attrs.evolve(clusters[place], filter=ReplicationFilter(ignore_table=(chance.choice(tables),)))
    run = make_run(attrs.evolve(configuration, clusters=tuple(clusters)))
    found = []
    for engine in ("reference", "local"):
        out = Folder(str(tmp_path / engine))
        resolved = ENGINES[engine](run, out)
        results = JudgedRun.read(loaded, out, resolved).results
        found.append({name: figures_of(result) for name, result in results.items()})
    assert found[0] == found[1]


def figures_of(result: ClusterResult) -> tuple[object, ...]:
    """Return counters that moved, rows and exceptions in any order, and the error of a stop."""
    counters = {name: value for name, value in result.counters.items() if value}
    rows = {name: Counter(map(repr, own)) for name, own in {**result.rows, **result.exceptions}.items()}
    return counters, rows, None if result.stop is None else result.stop.error


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("share", [0.3, 0.6])
def test_filters_in_logs_from_the_middle(share: float, engine: str, tmp_path: Path) -> None:
    """Under a function for transactions; the columnar engine leaves such a run to the reference engine."""
    configuration = ConflictCase.load(
        OPERATIONS / "filter_ignore_table" / "filter_ignore_table_epoch_trans_type7"
    ).configuration()
    first = configuration.clusters[0]
    epochs = scan_epochs(first.server_id, first.files).number.tolist()
    cut = attrs.evolve(configuration, span=Span(first={first.name: epochs[int(len(epochs) * share)]}))
    resolved = ENGINES[engine](make_run(cut), Folder(str(tmp_path)))
    assert not resolved.contradicted
    assert resolved.summary.compared > 0
