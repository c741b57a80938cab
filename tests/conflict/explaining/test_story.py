"""Stories by hand: a row that both clusters change at the same time, and transactions that depend on each other."""

from typing import Any

import pytest

from conflict.engine.ledger.layout import OUTCOMES
from conflict.explaining.carried_out import StoryRows
from conflict.explaining.drafts import StoryFacts, drafts_of
from conflict.explaining.events import EventKind, StoryEvent
from conflict.explaining.outcomes import Applied, RecordedOutcome
from conflict.explaining.row_changes import ChangeInLog, RowLog
from conflict.explaining.short_story import answer_of, parting_of
from conflict.explaining.story import StoryEnd
from conflict.explaining.story_so_far import StorySoFar, tell
from conflict.explaining.transactions_in_conflict import ConflictEpoch, trees_of
from conflict.history.timeline import Origin, RowChange
from ndb_formats.events.rows_event import ConflictFlag, Operation
from tests.conflict.histories import image, key, layouts, setups

Row = dict[str, int]
COLUMNS = ("k", "x", "v")
ROW = "d.t", key(1)


def change(
    cluster: str, epoch: int, operation: str, after: Row | None, *, own: bool = True, flags: int = 0, position: int = 0
) -> ChangeInLog:
    """Return a change of the row k=1 at a position of its cluster's binlog."""
    before = None if operation == "WRITE_ROW" else image("t", {0: 1})
    values = None if after is None else image("t", {COLUMNS.index(name): value for name, value in after.items()})
    found = RowChange(
        "d.t",
        key(1),
        Operation[operation],
        before,
        values,
        7,
        ConflictFlag(flags),
        Origin(f"{cluster}.000001", position or epoch, 0, 0),
    )
    return ChangeInLog(cluster, epoch, 0, own, "k=1", found)


def outcome(applier: str, **columns: Any) -> RecordedOutcome:
    """Return an outcome of an operation on the row k=1."""
    plain = {
        "group": 0,
        "ordinal": 0,
        "table": "d.t",
        "key": "k=1",
        "identity": key(1),
        "refresh": False,
        "row": 0,
        "payload_position": 0,
        "winner_payload_position": 0,
    }
    return RecordedOutcome(applier, {**dict.fromkeys(OUTCOMES.names), **plain, **columns})


def rejection(source_epoch: int, epoch: int, operation: str, cause: str, **columns: Any) -> RecordedOutcome:
    """Return what A decided on an operation of B that it rejected; B logged it at the position of its epoch."""
    place = {"source": "B", "source_epoch": source_epoch, "file": "B.000001", "position": source_epoch}
    return outcome("A", **place, epoch=epoch, operation=operation, verdict="REJECTED", cause=cause, **columns)


def log(cluster: str, changes: list[ChangeInLog], reported: dict[int, list[tuple[int, int]]]) -> RowLog:
    """Return a log; epoch n committed in second n."""
    times = {each.epoch: each.epoch * 1_000_000 for each in changes}
    return RowLog(cluster, changes, times, reported, layouts=layouts())


def told(facts: StoryFacts, function: str | None) -> StorySoFar:
    """Tell a story in which A has a function and B has none."""
    return tell(
        drafts_of(facts),
        facts,
        StoryRows.of(facts, setups(function)),
    )


def brief(event: StoryEvent) -> tuple[str, str, int | None, str | None, int | None]:
    """Return what matters of an event."""
    return event.cluster, event.kind.value, event.epoch, event.verdict, event.cause_number


def test_a_conflict_and_its_refresh() -> None:
    """B's update meets A's, which B has not applied yet: A rejects and refreshes it, and B takes the refresh."""
    mine = [
        change("A", 10, "WRITE_ROW", {"k": 1, "x": 1}),
        change("A", 20, "UPDATE_ROW", {"x": 2}),
        change("A", 22, "WRITE_ROW", {"k": 1, "x": 2}, own=False, flags=2),
    ]
    theirs = [
        change("B", 11, "WRITE_ROW", {"k": 1, "x": 1}, own=False),
        change("B", 19, "UPDATE_ROW", {"x": 3}),
        change("B", 21, "UPDATE_ROW", {"x": 2}, own=False),
        change("B", 23, "WRITE_ROW", {"k": 1, "x": 2}, own=False),
    ]
    rejected = rejection(
        19,
        22,
        "UPDATE_ROW",
        "ROW_IN_CONFLICT",
        incoming=10,
        stored=20,
        winner_cluster="A",
        winner_epoch=20,
        winner_operation="UPDATE_ROW",
        winner_refresh=False,
        winner_file="A.000001",
        winner_position=20,
        winner_row=0,
    )
    refreshed = outcome(
        "B", source="A", source_epoch=22, epoch=23, operation="WRITE_ROW", refresh=True, ordinal=-1, verdict="APPLIED"
    )
    facts = StoryFacts(
        {"A": log("A", mine, {}), "B": log("B", theirs, {11: [(1, 10)], 21: [(1, 20)], 23: [(1, 22)]})},
        {
            "A": [Applied("B", 11, 15, 0), Applied("B", 19, 22, 0)],
            "B": [Applied("A", 10, 11, 0), Applied("A", 20, 21, 0), Applied("A", 22, 23, 0)],
        },
        [rejected, refreshed],
        {"A": 1, "B": 2},
        {"A": ("B",), "B": ("A",)},
        frozenset({"A"}),
    )
    story = told(facts, "NDB$EPOCH()")
    assert [brief(event) for event in story.events] == [
        ("A", "committed", 10, None, None),
        ("B", "judged", 11, "APPLIED", 1),
        ("B", "committed", 19, None, None),
        ("A", "heard", 15, None, 1),
        ("A", "committed", 20, None, None),
        ("B", "judged", 21, "APPLIED", 5),
        ("A", "judged", 22, "REJECTED", 3),
        ("A", "refreshed", 22, None, 7),
        ("B", "judged", 23, "APPLIED", 8),
    ]
    decision = story.events[6]
    assert decision.sentence == (
        "the update was rejected: the row was changed here in epoch 20, and only epochs up to 10 had come back; "
        "B had not shown that it had that epoch of A when it made the change, so A's row stays and the change from B "
        "loses. "
        "What won is the update of A in its epoch 20 (event 5)"
    )
    assert (decision.place and decision.place.position, decision.row) == (19, {"k": 1, "x": 2})
    last = {event.cluster: event.row for event in story.events}
    assert last == {"A": {"k": 1, "x": 2}, "B": {"k": 1, "x": 2}}
    assert story.events[8].logged is not None


def test_changes_that_cross() -> None:
    """Without a function each cluster ends with the other's change, and the later decision parted them."""
    mine = [change("A", 10, "WRITE_ROW", {"k": 1, "x": 1}), change("A", 12, "UPDATE_ROW", {"x": 2}, own=False)]
    theirs = [change("B", 11, "WRITE_ROW", {"k": 1, "x": 2}), change("B", 13, "WRITE_ROW", {"k": 1, "x": 1}, own=False)]
    facts = StoryFacts(
        {"A": log("A", mine, {}), "B": log("B", theirs, {})},
        {"A": [Applied("B", 11, 12, 0)], "B": [Applied("A", 10, 13, 0)]},
        [],
        {"A": 1, "B": 2},
        {"A": ("B",), "B": ("A",)},
    )
    story = told(facts, None)
    parting = parting_of(story, ROW, {"A": StoryEnd({"k": 1, "x": 2}), "B": StoryEnd({"k": 1, "x": 1})})
    assert (parting.number, story.events[3].cluster, story.events[3].kind) == (4, "B", EventKind.JUDGED)
    assert parting.sentence.startswith(
        "x differs. On A B's write came last (event 2, applied in event 3); on B A's write came last (event 1, applied "
        "in event 4). Both were applied, each after the other cluster's own change: they crossed."
    )


@pytest.mark.parametrize(
    ("operation", "after", "made"),
    [
        ("UPDATE_ROW", {"x": 2}, {}),
        ("WRITE_ROW", {"k": 1, "x": 2}, {("A", ROW): 1}),
        ("DELETE_ROW", None, {("A", ROW): 1}),
    ],
)
def test_the_first_change_of_a_row_that_is_older_than_the_log(
    operation: str, after: Row | None, made: dict[Any, int]
) -> None:
    """An update shows that the row was there, and does not make it; a write makes it, a delete removes it."""
    facts = StoryFacts(
        {"A": log("A", [change("A", 10, operation, after)], {}), "B": log("B", [], {})},
        {"A": [], "B": []},
        [],
        {"A": 1, "B": 2},
        {"A": ("B",), "B": ("A",)},
        starts={"A": 10, "B": 10},
    )
    assert told(facts, "NDB$EPOCH()").made == made


def test_a_late_write_makes_a_deleted_row_again() -> None:
    """
    A deletes a row that B had deleted and written before that, so that B's late write comes after A's delete.

    The short form has the delete, the write that made the row again, and the last update; not B's delete, which came to
    nothing, nor the update between.
    """
    mine = [
        change("A", 10, "WRITE_ROW", {"k": 1, "x": 1}),
        change("A", 20, "DELETE_ROW", None),
        change("A", 31, "WRITE_ROW", {"k": 1, "x": 2}, own=False),
        change("A", 32, "UPDATE_ROW", {"x": 3}, own=False),
        change("A", 33, "UPDATE_ROW", {"x": 4}, own=False),
    ]
    theirs = [
        change("B", 11, "WRITE_ROW", {"k": 1, "x": 1}, own=False),
        change("B", 12, "DELETE_ROW", None),
        change("B", 13, "WRITE_ROW", {"k": 1, "x": 2}),
        change("B", 14, "UPDATE_ROW", {"x": 3}),
        change("B", 15, "UPDATE_ROW", {"x": 4}),
        change("B", 25, "DELETE_ROW", None, own=False),
    ]
    missing = rejection(12, 30, "DELETE_ROW", "ROW_DOES_NOT_EXIST")
    applied = {"A": [Applied("B", 12, 30, 0), *(Applied("B", 13 + n, 31 + n, 0) for n in range(3))]}
    applied["B"] = [Applied("A", 10, 11, 0), Applied("A", 20, 25, 0)]
    logs = {"A": log("A", mine, {}), "B": log("B", theirs, {})}
    story = told(StoryFacts(logs, applied, [missing], {"A": 1, "B": 2}, {"A": ("B",), "B": ("A",)}), "NDB$EPOCH()")
    parting = parting_of(story, ROW, {"A": StoryEnd({"k": 1, "x": 4}), "B": StoryEnd(None)})
    chosen = [brief(story.events[number - 1])[:4] for number in parting.events]
    assert chosen == [
        ("B", "committed", 13, None),
        ("B", "committed", 15, None),
        ("A", "committed", 20, None),
        ("B", "judged", 25, "APPLIED"),
        ("A", "judged", 31, "APPLIED"),
        ("A", "judged", 33, "APPLIED"),
    ]
    made, removed = (parting.events[place] for place in (4, 3))
    assert parting.number == made
    assert parting.sentence.startswith(
        f"It is on A alone. On A B's write made it (event {parting.events[0]}, applied in"
    )
    assert f"on B A's delete removed it (event {parting.events[2]}, applied in event {removed})" in parting.sentence
    (rejected,) = (event for event in story.events if event.verdict == "REJECTED")
    assert rejected.sentence.endswith(f"What won is the delete of A in its epoch 20 (event {parting.events[2]})")


def test_an_update_of_a_refreshed_row_loses_against_what_the_refresh_carries() -> None:
    """B's first update makes A refresh the row, so its second one meets the refresh: what won is A's update."""
    mine = [
        change("A", 10, "WRITE_ROW", {"k": 1, "x": 1}),
        change("A", 20, "UPDATE_ROW", {"x": 2}),
        change("A", 22, "WRITE_ROW", {"k": 1, "x": 2}, own=False, flags=2, position=22),
        change("A", 24, "WRITE_ROW", {"k": 1, "x": 2}, own=False, flags=2, position=24),
    ]
    theirs = [
        change("B", 11, "WRITE_ROW", {"k": 1, "x": 1}, own=False),
        change("B", 18, "UPDATE_ROW", {"x": 3}),
        change("B", 19, "UPDATE_ROW", {"x": 4}),
    ]
    lost = [
        rejection(
            source_epoch,
            epoch,
            "UPDATE_ROW",
            "ROW_IN_CONFLICT",
            incoming=10,
            stored=stored,
            winner_cluster="A",
            winner_epoch=stored,
            winner_operation="UPDATE_ROW" if stored == 20 else "WRITE_ROW",
            winner_refresh=stored != 20,
            winner_file="A.000001" if stored == 20 else None,
            winner_position=20,
            winner_row=0,
        )
        for source_epoch, epoch, stored in ((18, 22, 20), (19, 24, 22))
    ]
    applied = {"A": [Applied("B", 18, 22, 0), Applied("B", 19, 24, 0)], "B": [Applied("A", 10, 11, 0)]}
    logs = {"A": log("A", mine, {}), "B": log("B", theirs, {})}
    story = told(StoryFacts(logs, applied, lost, {"A": 1, "B": 2}, {"A": ("B",), "B": ("A",)}), "NDB$EPOCH()")
    first, second = (event for event in story.events if event.verdict == "REJECTED")
    won = next(event.number for event in story.events if event.kind is EventKind.COMMITTED and event.epoch == 20)
    refresh = next(event.number for event in story.events if event.kind is EventKind.REFRESHED)
    assert first.sentence.endswith(f"What won is the update of A in its epoch 20 (event {won})")
    assert second.sentence.startswith(
        "the update was rejected: the row was refreshed here in epoch 22, and only epochs"
    )
    assert f"update of A in its epoch 20 (event {won}); the refresh of epoch 22 (event {refresh})" in second.sentence
    assert [brief(story.events[number - 1])[:3] for number in answer_of(story, [second.number])] == [
        ("B", "committed", 19),
        ("A", "committed", 20),
        ("A", "refreshed", 22),
        ("A", "judged", 24),
        ("A", "refreshed", 24),
        ("B", "not applied", None),
    ]


def test_what_was_not_applied_parts() -> None:
    """A change that the other applier never came to is what parted the row."""
    mine = [change("A", 10, "WRITE_ROW", {"k": 1, "x": 1})]
    logs = {"A": log("A", mine, {}), "B": log("B", [], {})}
    facts = StoryFacts(logs, {"A": [], "B": []}, [], {"A": 1, "B": 2}, {"A": ("B",), "B": ("A",)})
    story = told(facts, "NDB$MAX(x)")
    parting = parting_of(story, ROW, {"A": StoryEnd({"k": 1, "x": 1}), "B": StoryEnd(None)})
    assert [event.kind for event in story.events] == [EventKind.COMMITTED, EventKind.NOT_APPLIED]
    assert (parting.number, "B had not applied epoch 10 of A when the logs end" in parting.sentence) == (2, True)


def test_a_value_that_wins_and_one_that_does_not() -> None:
    """A function that compares a column is told with both values, whoever wins."""
    mine = [
        change("A", 10, "WRITE_ROW", {"k": 1, "x": 5}),
        change("A", 15, "UPDATE_ROW", {"k": 1, "x": 6}, own=False),
    ]
    theirs = [
        change("B", 11, "WRITE_ROW", {"k": 1, "x": 5}, own=False),
        change("B", 12, "UPDATE_ROW", {"k": 1, "x": 6}),
        change("B", 14, "UPDATE_ROW", {"k": 1, "x": 4}),
    ]
    lost = rejection(14, 16, "UPDATE_ROW", "ROW_IN_CONFLICT", incoming=4, stored=6)
    facts = StoryFacts(
        {"A": log("A", mine, {}), "B": log("B", theirs, {})},
        {"A": [Applied("B", 12, 15, 0), Applied("B", 14, 16, 0)], "B": [Applied("A", 10, 11, 0)]},
        [lost],
        {"A": 1, "B": 2},
        {"A": ("B",), "B": ("A",)},
    )
    won, rejected = (
        event.sentence for event in told(facts, "NDB$MAX(x)").events if event.source == "B" != event.cluster
    )
    assert won == "the update was applied: it brings x=6, and the row had 5"
    assert rejected == (
        "the update was rejected: it brings x=4, which does not win over the row's 6; NDB$MAX applies an update only "
        "if its x is greater than the row's"
    )


@pytest.mark.parametrize(("brought", "verdict", "left"), [(4, "APPLIED", 4), (9, "REJECTED", 5)])
def test_a_row_is_as_the_result_says(brought: int, verdict: str, left: int) -> None:
    """Nothing is judged again: what decided may be rows that are not in the story. A's row had 5."""
    theirs = [change("B", 14, "UPDATE_ROW", {"k": 1, "x": brought})]
    facts = StoryFacts(
        {"A": log("A", [change("A", 10, "WRITE_ROW", {"k": 1, "x": 5})], {}), "B": log("B", theirs, {})},
        {"A": [Applied("B", 14, 16, 0)], "B": []},
        [] if verdict == "APPLIED" else [rejection(14, 16, "UPDATE_ROW", "ROW_IN_CONFLICT", incoming=9, stored=9)],
        {"A": 1, "B": 2},
        {"A": ("B",), "B": ()},
    )
    (judged,) = (event for event in told(facts, "NDB$MAX(x)").events if event.kind is EventKind.JUDGED)
    assert (judged.verdict, judged.row) == (verdict, {"k": 1, "x": left})


def test_dependencies() -> None:
    """Transaction 2 shares a row with 1, and 3 with 2; 1 alone is in conflict itself, 4 has nothing to do with them."""

    def rejected(group: int, text: str, own: str | None = None) -> RecordedOutcome:
        place = {"source": "B", "source_epoch": 9, "epoch": 3, "cause": "TRANS_IN_CONFLICT", "own_cause": own}
        return outcome(
            "A", **place, group=group, ordinal=group, key=text, identity=text.encode(), transaction_id=100 + group
        )

    epoch = ConflictEpoch.of(
        [
            rejected(1, "k=1", "ROW_IN_CONFLICT"),
            rejected(2, "k=1"),
            rejected(2, "k=2"),
            rejected(3, "k=2"),
            rejected(4, "k=9", "ROW_DOES_NOT_EXIST"),
        ]
    )
    root = epoch.root(3)
    assert root is not None
    assert (root["group"], epoch.root(4) is epoch.own(4)[0]) == (1, True)
    because, follows = trees_of(epoch, 2, lambda each: str(each["key"]))
    assert [(each.group, each.through, each.sentences) for each in because.branches] == [(1, ("d.t", "k=1"), ("k=1",))]
    assert [(each.group, each.through, each.branches) for each in follows] == [(3, ("d.t", "k=2"), ())]


def test_a_column_that_one_cluster_lacks_parts_no_row() -> None:
    """The tables of the two clusters differ by it; the rows are the same if all columns that both have are."""
    narrow, wide = StoryEnd({"k": 1, "x": 2}), StoryEnd({"k": 1, "x": 2, "y": None})
    assert not narrow.differs_from(wide)
    assert not wide.differs_from(narrow)
    assert narrow.differing_columns(StoryEnd({"k": 1, "x": 3, "y": None})) == ["x"]
    assert narrow.differs_from(StoryEnd(None))
    assert not StoryEnd(None).differs_from(StoryEnd(None))
