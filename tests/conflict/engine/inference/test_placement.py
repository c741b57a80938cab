"""Epochs without a trace are placed where all that they do comes to nothing."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.engine.inference.place_trials import PlaceTrials
from conflict.engine.inference.placement import NOT_APPLIED, Placed, place_untraced, restricted, touched_rows
from conflict.engine.inference.replay import resolve
from conflict.engine.ledger.contradictions import contradicted_rows
from conflict.engine.ledger.open_places import Alternative, OpenPlace
from conflict.engine.ledger.resolution import Resolution
from conflict.engine.ledger.resolution_ledger import ReferenceLedger
from conflict.engine.ledger.summary import with_open_schedule
from conflict.engine.reference.cluster import LoggedChange
from conflict.history.epochs import AppliedEpoch
from conflict.history.model import Cluster, History
from conflict.history.reading.network import direct_traces
from conflict.history.run import Run
from conflict.history.scheduling.placing import interleave
from conflict.history.scheduling.schedule import place_applies
from conflict.history.scheduling.summaries import Summary, epoch_ends
from conflict.history.timeline import EpochApply, Transaction, timeline_of
from conflict.rules.replication_table import Role
from ndb_formats.schema.tables import Schema
from tests.conflict.figures import figures
from tests.conflict.histories import Setups, counters, history, layouts, replayed, setups
from tests.conflict.worlds import Step, World, steps, world
from tests.examples import examples

SERVER_IDS = {name: place for place, name in enumerate("ABCD", start=1)}
PAIR = {"A": ("B",), "B": ("A",)}
Sources = Mapping[str, tuple[str, ...]]


def without_hints(clusters: Sequence[Cluster], found: History, sources: Sources = PAIR) -> History:
    """Return a History of these timelines, in which the binlogs alone tell when untraced epochs were applied."""
    summaries = direct_traces(_network(sources).links, _summaries(clusters))
    applies: dict[str, tuple[EpochApply, ...]] = {}
    timelines = []
    for cluster in clusters:
        name, placed = cluster.name, list[EpochApply]()
        for source in sources[name]:
            ids = {"source_id": SERVER_IDS[source], "applier_id": SERVER_IDS[name]}
            placed += place_applies(summaries[name], summaries[source], source_name=source, **ids)[0].applies()
        applies[name] = tuple(placed)
        own = [item for item in cluster.timeline if isinstance(item, Transaction)]
        timelines.append(attrs.evolve(cluster, timeline=timeline_of(own, placed)))
    ends = {name: epoch_ends(own) for name, own in summaries.items()}
    return attrs.evolve(found, clusters=tuple(timelines), applies=applies, ends=ends)


def _network(sources: Sources) -> Run:
    clusters = tuple(
        ClusterConfiguration(name, (LoggingServer(SERVER_IDS[name]),), replicates_from=given)
        for name, given in sources.items()
    )
    return Run(Configuration(clusters, Schema(), ()))


def _summaries(clusters: Sequence[Cluster]) -> dict[str, list[Summary]]:
    """Return what the binlogs show; with an epoch that a cluster applied come the news of its source."""
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    applied: dict[tuple[str, int], list[AppliedEpoch]] = defaultdict(list)
    for cluster, item in interleave(History(tuple(clusters), {})):
        here = cluster.name, item.epoch
        if isinstance(item, Transaction):
            groups[here].append(item.group)
        elif isinstance(item, EpochApply) and item.traced:
            news = [(each.server_id, each.epoch) for each in applied[item.source, item.foreign_epoch]]
            for server_id, epoch in dict.fromkeys([*news, (SERVER_IDS[item.source], item.foreign_epoch)]):
                if cluster.takes(server_id, item.source):
                    applied[here].append(AppliedEpoch(item.group, server_id, epoch))
    found: dict[str, list[Summary]] = {cluster.name: [] for cluster in clusters}
    for name, epoch in sorted(groups.keys() | applied.keys()):
        if groups[name, epoch] or applied[name, epoch]:
            own, foreign = tuple(groups[name, epoch]), tuple(applied[name, epoch])
            found[name].append(Summary(epoch, own, foreign, len(own)))
    return found


def placed(text: str, a: str | None = None, b: str | None = None, exceptions: str | None = None) -> Placed:
    """Place the untraced epochs of a text, in which ``<7?`` stands where epoch 7 was applied and left no trace."""
    found = setups(a, b, exceptions)
    truth = replayed(text, a, b, exceptions)
    recorded = {name: cluster.result.effects for name, cluster in truth.items()}
    return place_untraced(without_hints(history(text).clusters, history(text)), found, recorded)


def where(found: Placed, name: str) -> list[tuple[int, int, int, bool]]:
    """Return (foreign epoch, own epoch, group, traced) of each epoch apply of a cluster."""
    return [(each.foreign_epoch, each.epoch, each.group, each.traced) for each in found.applies[name]]


MAX = "NDB$MAX(x)"
START_ROW = "A:i1=5@1  B:<1@1  "


def test_late_enough_for_all_operations_to_lose():
    """B's update to 7 loses on A only after A wrote 9 in epoch 2; as early as possible it would have shown."""
    found = placed(START_ROW + "A:u1=5>9@2  B:u1=5>7@2  A:<2?@3  B:<2@3", MAX, MAX)
    assert where(found, "A")[:2] == [(1, 2, -1, False), (2, 3, -1, False)]


def test_an_epoch_that_was_never_applied() -> None:
    """A updated row 1 in epoch 2; B has no trace of it, and one of epoch 3, and its row 1 is as before: a skip."""
    found = placed(START_ROW + "A:u1=5>6@2  A:i2=1@3  B:<3@2")
    assert where(found, "B") == [(1, 1, 0, True), (3, 2, 0, True)]
    (skipped,) = found.schedule.skipped
    assert (skipped.applier, skipped.source, skipped.foreign_epoch) == ("B", "A", 2)
    assert [(each.table, each.operation.name) for each in skipped.changes] == [("d.t", "UPDATE_ROW")]
    assert found.schedule.assumed["B"] == 0


def test_an_epoch_that_a_function_rejected_is_no_skip() -> None:
    """With NDB$MAX, B's own 9 wins over A's 6: the epoch left no trace because it was rejected."""
    found = placed(START_ROW + "A:u1=5>6@2  A:i2=1@3  B:u1=5>9@2  B:<3@3", MAX, MAX)
    assert found.schedule.skipped == ()
    assert [each[0] for each in where(found, "B")] == [1, 2, 3]


def test_many_epochs_without_a_trace_are_no_skips() -> None:
    """Then something else is wrong, such as the function, and the contradictions stay."""
    updates = "  ".join(f"A:u1={epoch + 3}>{epoch + 4}@{epoch}" for epoch in range(2, 7))
    found = placed(f"{START_ROW}{updates}  A:i2=1@7  B:<7@2")
    assert found.schedule.skipped == ()
    assert found.schedule.assumed["B"] == 5


def test_two_rejections_are_no_circle():
    """Both updates to 9 lose on the other side, each after that side's own: neither can have come first."""
    found = placed(START_ROW + "A:u1=5>9@2  B:u1=5>9@2  A:<2?@3  B:<2?@3", MAX, MAX)
    assert (where(found, "A")[-1][:2], where(found, "B")[-1][:2]) == ((2, 3), (2, 3))


def test_a_delete_of_a_missing_row_goes_with_every_place_where_it_is_missing():
    """A never had row 2, so only the cause is the same everywhere; nothing is open but whether it was applied."""
    text = START_ROW + "B:i2=5@2  B:d2=5@2  A:i3=1@2  A:<2?@3"
    found = placed(text, MAX, MAX)
    assert where(found, "A")[-1] == (2, 2, -1, False)


def test_several_places_are_candidates():
    """B's delete of row 1 loses on A while the row has another value, and when it is gone: the cause is open."""
    text = START_ROW + "A:u1=5>9@2  A:d1=9@3  B:d1=5@2  A:<2?@4  A:i7=1@4  B:i8=1@3  A:<3@5"
    (place,) = [each for each in placed(text, MAX, MAX).schedule.places if each.applier == "A"]
    causes = [[each.decision.cause.name for each in alternative.decided] for alternative in place.alternatives]
    assert (place.foreign_epoch, causes, place.chosen) == (2, [["ROW_IN_CONFLICT"], ["ROW_DOES_NOT_EXIST"]], 0)


def test_at_the_end_it_is_open_whether_it_was_applied_at_all():
    """Applied or not, nothing shows it; the counter says so."""
    (place,) = placed(START_ROW + "A:u1=5>9@2  B:u1=5>7@2  A:<2?@3  B:<2@3", MAX, MAX).schedule.places
    assert [dict(each.counters) for each in place.alternatives] == [{"Ndb_conflict_fn_max": 1}, {}]
    assert place.chosen == 0


def test_what_would_show_at_the_end_was_not_applied():
    """B's insert of row 2 is not on A, so A's applier was stopped before it."""
    found = placed(START_ROW + "B:i2=5@2  B:u1=5>3@3", MAX, MAX)
    assert [each[0] for each in where(found, "A")] == [1]
    assert found.schedule.places == ()


def test_a_reflected_operation_is_discarded_where_it_is():
    """A refresh that finds no row changes nothing."""
    text = START_ROW + "A:d1=5@2  B:d1=5@2  A:<2?@3  B:<2?@3"
    found = placed(text, "NDB$EPOCH()")
    assert where(found, "A")[-1][:2] == (2, 3)


def truth_of(made: World, roles: dict[str, Role]) -> tuple[History, dict[tuple[str, str, int], list[object]]]:
    """Return the timelines of a world without hints, and the decisions on each untraced epoch, by link and epoch."""
    names = [cluster.name for cluster in made.replayed]
    clusters, decisions = [], {}
    for number, cluster in enumerate(made.replayed):
        name = cluster.name
        own = [
            (epoch, entry)
            for epoch, entries in cluster.log.items()
            for entry in entries
            if isinstance(entry, LoggedChange) and entry.ordinal >= 0
        ]
        transactions = [
            Transaction(epoch, group, tuple(entry.change for _, entry in items))
            for (epoch, group), items in groupby(own, key=lambda item: (item[0], item[1].group))
        ]
        logged = set(made.closed[number])
        applies = [
            EpochApply(*place, names[source], epoch, traced=place[0] in logged)
            for (applier, source, epoch), place in made.places.items()
            if applier == number
        ]
        timeline = timeline_of(transactions, [each for each in applies if each.traced])
        clusters.append(attrs.evolve(cluster.cluster, timeline=timeline, role=roles.get(name, Role.NONE)))
        decisions |= {
            (name, apply.source, apply.foreign_epoch): [
                (each.verdict, each.cause)
                for each in cluster.outcomes
                if (each.source, each.source_epoch) == (apply.source, apply.foreign_epoch)
            ]
            for apply in applies
            if not apply.traced
        }
    sources = {name: tuple(names[each] for each in made.sources[at]) for at, name in enumerate(names)}
    return without_hints(clusters, History(tuple(clusters), layouts()), sources), decisions


def answer_of(place: OpenPlace, decided: list[object] | None) -> Alternative | None:
    """Return the alternative that is the truth; None if none is."""
    if not decided:
        return next((each for each in place.alternatives if each.moves_nothing), None)
    return next(
        (
            each
            for each in place.alternatives
            if [(one.decision.verdict, one.decision.cause) for one in each.decided] == decided
        ),
        None,
    )


def check(made: World, found: Setups, roles: dict[str, Role]) -> Resolution:
    """Compare what was found of a world's binlogs with what happened."""
    known, decisions = truth_of(made, roles)
    recorded = {
        cluster.name: {
            place: effects for place, effects in cluster.result.effects.items() if place[0] in made.closed[at]
        }
        for at, cluster in enumerate(made.replayed)
    }
    touched = restricted(known, touched_rows(known, found, recorded))
    placed = place_untraced(touched, found, recorded)
    with pytest.MonkeyPatch.context() as patch:  # as if every place were tried with all rows
        patch.setattr(PlaceTrials, "_rows_tell", lambda *_: False)
        assert place_untraced(touched, found, recorded) == placed
    selected = {}
    for place in placed.schedule.places:
        answer = answer_of(place, decisions.get((place.applier, place.source, place.foreign_epoch)))
        assert answer is not None, place
        selected[place] = answer
    assert placed.schedule.allows(selected)
    resolution = resolve(placed.history(known), found)
    compared = {
        name: contradicted_rows((result.effects, {}), (recorded[name], {}))
        for name, result in resolution.clusters.items()
    }
    summary = with_open_schedule(
        figures(ReferenceLedger(placed.history(known), found, resolution, compared)), placed.schedule
    )
    assert summary.contradicted == 0
    for cluster in made.replayed:
        result, truth = resolution.clusters[cluster.name], cluster.result
        assert {key: row.payloads for key, row in cluster.store.rows.items()}.keys() == result.versions.keys()
        for counter, value in truth.counters.items():
            least, most = summary.counter_ranges[cluster.name].get(counter, (result.counters[counter],) * 2)
            assert least <= value <= most, (cluster.name, counter)
    return resolution


FUNCTIONS = ["NDB$OLD(x)", MAX, "NDB$MAX_DELETE_WIN(x)", "NDB$MAX_INS(x)", "NDB$MAX_DEL_WIN_INS(x)"]


@examples(37, long=150)
@given(st.sampled_from(FUNCTIONS), steps("tn"))
def test_what_happened_is_among_the_candidates(function: str, done: list[Step]):
    """For functions by column: rows are right, counters within their ranges, and the answers go together."""
    made = world(function)
    made.run(done)
    for cluster in (0, 1):
        made.close(cluster)
    check(made, setups(function, function), {})


@examples(25, long=100)
@given(st.sampled_from(["NDB$EPOCH()", "NDB$EPOCH_TRANS()", "NDB$EPOCH2()", "NDB$EPOCH2_TRANS()"]), steps("t"))
def test_what_happened_is_among_the_candidates_by_epoch(function: str, done: list[Step]):
    """For functions by epoch, whose epochs leave no trace where both clusters deleted a row."""
    roles = {"A": Role.PRIMARY, "B": Role.SECONDARY} if "EPOCH2" in function else {}
    made = world(function, only_first="EPOCH2" not in function, roles=roles)
    made.run(done)
    for cluster in (0, 1):
        made.close(cluster)
    both = function if "EPOCH2" in function else None
    check(made, setups(function, both), roles)


def test_not_applied_moves_nothing():
    """It is the answer with nothing in it."""
    assert NOT_APPLIED.moves_nothing
    assert counters(check(world(MAX), setups(MAX, MAX), {}), "A") == {}
