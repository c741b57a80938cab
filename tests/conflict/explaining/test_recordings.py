"""Stories of recorded rows: every exceptions row has its decision, and every story ends where the row ends."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conflict.errors import ConfigurationError
from conflict.explaining.events import StoryEvent, plain_value
from conflict.explaining.explainer import Explainer
from conflict.explaining.story import Story
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.scheduling.hints import hints_of_steps
from conflict.judge.case import ConflictCase
from conflict.results.result import Result
from conflict.runs.pipeline import run_by
from tests.corpora import RECORDINGS

FOLDERS = [RECORDINGS / name for name in ("conflict", "everyday", "lives")]
CASES = sorted(path.parent for folder in FOLDERS for path in folder.rglob("scenario.json"))
OUTCOME = ("source_epoch", "epoch", "group", "ordinal", "table", "identity")
REASON = ("verdict", "cause", "own_cause", "incoming", "stored")
FEW = ("epoch/concurrent_5021_type8", "epoch_trans/dependent_chain_type8", "epoch2/concurrent_5021_type8")


def explainer_of(path: Path, out: Path) -> tuple[Explainer, dict[str, Any]]:
    """Resolve a recording and return its explainer, and what was recorded."""
    case = ConflictCase.load(path)
    run = run_by(
        "reference", make_run(case.configuration(), lambda ends: hints_of_steps(case.steps, ends)), Folder(str(out))
    )
    return Explainer(Result(Folder(str(out)), run.to_json("reference"), {}), run.run), case.expected


def exceptions_places(explainer: Explainer) -> Iterator[dict[str, Any]]:
    """Yield what every row of every exceptions table stands for."""
    for cluster in explainer.result.clusters:
        for table in explainer.tables:
            rows = explainer.result.exceptions(table, cluster)
            if rows.num_rows:
                yield from rows["NDB$outcome"].to_pylist()


def event_of(story: Story, place: dict[str, Any]) -> StoryEvent:
    """Return the one event that an exceptions row stands for."""
    names = ("source_epoch", "epoch", "group", "ordinal")
    (event,) = [
        event
        for event in story.events
        if event.cluster == place["applier"] and all(getattr(event, name) == place[name] for name in names)
    ]
    return event


def check(explainer: Explainer) -> int:
    """Check every exceptions row and every row that ends different; return the number of both."""
    places = list(exceptions_places(explainer))
    rows = list(dict.fromkeys((place["table"], place["identity"]) for place in places))
    stories = {(story.table, story.identity): story for story in explainer.rows(rows)} if rows else {}
    for place in places:
        event = event_of(stories[place["table"], place["identity"]], place)
        assert event.verdict == "REJECTED"
        assert event.place is not None
        assert event.sentence.startswith(f"the {(event.operation or '').split('_')[0].lower()} was rejected: ")
    different = explainer.differences()
    counts = explainer.result.run["differing_rows"]
    assert len(different) == sum(counts[name] for name, table in explainer.tables.items() if table.primary_key)
    assert all(story.parted_by for story in different)
    for story in [*stories.values(), *different]:
        check_end(story)
    for story in different:
        check_short_form(story)
    return len(places) + len(different)


def check_end(story: Story) -> None:
    """The row that the story follows is the final row, in all columns that it knows."""
    for name, end in story.ends.items():
        events = [event for event in story.events if event.cluster == name]
        if not events or not end.known:
            continue
        row = events[-1].row
        assert (row is None) == (end.row is None)
        for column, value in (row or {}).items():
            if end.row is not None and column in end.row:
                assert str(plain_value(value)) == str(plain_value(end.row[column]))


def check_short_form(story: Story) -> None:
    """
    Check the events that decide how a row ends that ends different.

    On each cluster the row is there or not as the event shown before left it, and the last one leaves it as it ends, in
    whether it is there and in the columns that differ.
    """
    names = [name for name, end in story.ends.items() if end.known]
    columns = story.ends[names[0]].differing_columns(story.ends[names[1]])
    assert story.parted_by in story.chosen
    assert {number for event in story.events if event.number in story.chosen for number in event.cites} <= {
        *story.chosen
    }
    for name in names:
        mine = [event for event in story.events if event.cluster == name]
        before = dict(zip((event.number for event in mine[1:]), mine, strict=False))
        left: StoryEvent | None = None
        for event in (event for event in mine if event.number in story.chosen):
            if left is not None:
                assert (before[event.number].row is None) == (left.row is None)
            left = event
        if left is not None:
            end = story.ends[name].row
            assert (left.row is None) == (end is None)
            for column in columns:
                assert plain_value((left.row or {})[column]) == plain_value((end or {})[column])


def decision(event: StoryEvent) -> tuple[object, ...]:
    """Return what a story says of a decision, without the numbers of events, which differ from story to story."""
    names = ("cluster", "epoch", "source", "source_epoch", "group", "ordinal", "table", "key", "operation")
    reasons = ("verdict", "cause", "own_cause", "incoming", "stored", "winner", "candidates")
    told = re.sub(r"\bevent \d+", "event", event.sentence)
    return *(getattr(event, name) for name in (*names, *reasons)), told


def test_an_id_that_both_clusters_gave(tmp_path: Path) -> None:
    """
    Each has its own story and title.

    Row 2 is changed by A's transaction 644254544128 in epoch 1108101562383, and by B's transaction 648549511424, which
    loses; A's transaction of that id changes row 3.
    """
    explainer, _ = explainer_of(RECORDINGS / "conflict/max/upd_upd_a_first_type7", tmp_path)
    with pytest.raises(ConfigurationError, match="ask for A:648549511424 or B:648549511424"):
        explainer.transaction(648549511424)
    its = {name: explainer.transaction(f"{name}:648549511424") for name in "AB"}
    assert {name: story.title for name, story in its.items()} == {
        "A": "Transaction 648549511424 of A, committed in epoch 1108101562385",
        "B": "Transaction 648549511424 of B, committed in epoch 1108101562395",
    }
    assert {name: {event.key for event in story.events} for name, story in its.items()} == {"A": {"k=3"}, "B": {"k=2"}}
    assert its["B"].events[0].transaction_id == 644254544128  # the change that it lost against comes first
    assert its["B"].to_json()["transaction"] == "B:648549511424"


@pytest.mark.parametrize("case", FEW)
def test_one_decision_has_one_reason(case: str, tmp_path: Path) -> None:
    """The stories of its row, its transaction and its exceptions row tell it alike, as the outcomes have it."""
    explainer, _ = explainer_of(RECORDINGS / "conflict" / case, tmp_path)
    result = explainer.result
    outcomes = {
        (name, *(row[column] for column in OUTCOME)): row
        for name in result.clusters
        for row in result.outcomes(name).to_pylist()
    }
    tables = {name: table for name, table in explainer.tables.items() if table.primary_key}
    keys = {(row["table"], row["identity"]) for row in outcomes.values() if row["table"] in tables}
    by_row = {(story.table, story.identity): story for story in explainer.rows(sorted(keys))}
    for number, place in enumerate(exceptions_places(explainer), start=1):
        story = explainer.exception(number)
        assert story.marked is not None
        event = story.event(story.marked)
        outcome = outcomes[event.cluster, *(getattr(event, name) for name in OUTCOME)]
        assert [getattr(event, name) for name in REASON] == [outcome[name] for name in REASON]
        winner = (event.winner.cluster, event.winner.epoch) if event.winner else (None, None)
        assert winner == (outcome["winner_cluster"], outcome["winner_epoch"])
        assert decision(event) == decision(event_of(by_row[place["table"], place["identity"]], place))
    transactions = {event.transaction_id for story in by_row.values() for event in story.events} - {None}
    told = 0
    for transaction in sorted(transactions, key=str)[:40]:
        for event in explainer.transaction(transaction or 0).events:
            if (
                event.kind == "judged"
                and event.transaction_id == transaction
                and (event.table, event.identity) in by_row
            ):
                same = [each for each in by_row[event.table, event.identity].events if each.place == event.place]
                assert decision(event) in [decision(each) for each in same]
                told += 1
    assert told


@pytest.mark.parametrize("case", FEW)
def test_a_few_recordings(case: str, tmp_path: Path) -> None:
    """Each of them has conflicts of its kind."""
    assert check(explainer_of(RECORDINGS / "conflict" / case, tmp_path)[0])


@pytest.mark.slow
@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_recording(path: Path, tmp_path: Path) -> None:
    """No exceptions row and no row that ends different is without its decision, as many as are recorded."""
    explainer, expected = explainer_of(path, tmp_path)
    tables = [table for side in expected.values() for table in side.get("exceptions", {}).values()]
    recorded = sum(len(table["rows"]) for table in tables)
    found = sum(1 for _ in exceptions_places(explainer))
    assert check(explainer) >= found
    assert found == recorded
