"""Transactions of logs that start in the middle, worked out by hand. Cluster A's epochs count from 1, B's from 11."""

from collections.abc import Mapping

import attrs
import pytest

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.engine.inference.replay import resolve
from conflict.engine.ledger.careful import CareKind
from conflict.engine.ledger.contradictions import Effects
from conflict.errors import ConfigurationError
from conflict.history.model import History, Start
from conflict.history.run import Run
from conflict.history.shown_effects import Effect
from conflict.history.tasks import in_process
from conflict.rules.decision import Cause, Verdict
from conflict.rules.replication_table import ReplicationRow
from ndb_formats.schema.create_table import parse_schema
from tests.conflict.engine.columnar.both_engines import by_kernels, by_reference
from tests.conflict.histories import BASIC_EXCEPTIONS, TABLES, history, key

EPOCH, TRANS = "NDB$EPOCH()", "NDB$EPOCH_TRANS()"
Shown = Mapping[str, Mapping[tuple[int, int], Mapping[int, Effect]]]


def from_the_middle(text: str, shown: Shown) -> tuple[History, Mapping[str, Effects]]:
    """Return a History whose logs start in the middle, at A's epoch 5 and B's epoch 15; and what binlogs show."""
    made = history(text)
    starts = zip(made.clusters, (5, 15), strict=True)
    clusters = tuple(attrs.evolve(cluster, start=Start(epoch)) for cluster, epoch in starts)
    effects = {
        name: {place: {("d.t", key(row)): effect for row, effect in rows.items()} for place, rows in found.items()}
        for name, found in shown.items()
    }
    return attrs.evolve(made, clusters=clusters), effects


def configured(a: str | None, b: str) -> Run:
    """Return a run with these functions for table t, which has an exceptions table."""
    rows = tuple(ReplicationRow("d", "t", server, 7, function) for server, function in ((1, a), (2, b)))
    clusters = ClusterConfiguration("A", (LoggingServer(1),)), ClusterConfiguration("B", (LoggingServer(2),))
    return Run(Configuration(clusters, parse_schema(TABLES + BASIC_EXCEPTIONS.format("t$EX"), database="d"), rows))


def test_a_row_that_was_not_refreshed_tells_that_its_transaction_was_not_in_conflict() -> None:
    """
    A takes B's insert of row 1, and sends a refresh of it to B if A had the row; A's binlog does not tell that.

    A refresh is applied as an insert: B, which has the row, would reject it with its transaction, and refresh the row.
    B's binlog shows no refresh, so a conflict is none of the candidates. The kernels, which assume the conflict until
    they see that, leave the run to the reference engine.
    """
    run = configured(EPOCH, TRANS)
    shown = {"A": {}, "B": {(16, 0): {2: Effect.CHANGED}}}
    made, effects = from_the_middle("B:i1=5@15 A:<15@5 A:i2=6@5 B:<5@16", shown)
    (undecided,) = resolve(made, run.setups.at_end, shown=effects).clusters["B"].undecided
    assert {(each.verdict, each.cause) for each in undecided.candidates} == {
        (Verdict.APPLIED, Cause.NONE),
        (Verdict.IGNORED, Cause.NONE),
    }
    with pytest.raises(ConfigurationError, match=CareKind.MIDDLE_REJECTED.value.what):
        by_kernels(made, run, in_process, buckets=1, epochs_per_segment=3, shown=effects)


REFRESHED, CHANGED = Effect.REFRESHED, Effect.CHANGED
FIRST, AGAIN = "B:<4@15 B:i1=5@16 A:u1=4>5@5 B:<5@17", "B:i1=5@15 A:u1=4>5@5 B:<5@16 B:<4@17 A:u1=5>6@6 B:<6@18"
NOT_KNOWN = "A:i1=5@5 B:<5@16 B:<4@17 A:i2=6@6 B:<6@18"


@pytest.mark.parametrize(
    ("text", "shown", "numbers"),
    [
        (FIRST, {(15, 0): {2: REFRESHED}, (17, 0): {1: REFRESHED}}, [2]),
        (FIRST, {(15, 0): {2: CHANGED}, (17, 0): {1: REFRESHED}}, [3]),
        (AGAIN, {(16, 0): {1: REFRESHED}, (17, 0): {2: REFRESHED}, (18, 0): {1: REFRESHED}}, [3, 5]),
        (AGAIN, {(16, 0): {1: REFRESHED}, (17, 0): {2: CHANGED}, (18, 0): {1: REFRESHED}}, [3, 6]),
        (NOT_KNOWN, {}, [3, 5]),
    ],
)
def test_a_refresh_by_an_epoch_that_is_older_than_the_log_leaves_the_applier_in_track(
    text: str, shown: Mapping[tuple[int, int], Mapping[int, Effect]], numbers: list[int]
) -> None:
    """
    B changed row 1 itself, so it rejects A's updates of it. A's epoch 4 is not in the log; B's binlog shows its work.

    A refreshed row tells that a transaction of epoch 4 was in conflict. So the next conflict is found in pass TRACK,
    which uses up one number of NDB$count; the row gets the number after it. After an epoch without a conflict, pass
    NORMAL uses up one as well. If the binlog shows nothing at all, the applier is taken to go on as before; then B may
    have had the rows that A inserts, and its first candidate is that it had them.
    """
    run = configured(None, TRANS)
    made, effects = from_the_middle(text, {"A": {}, "B": shown})
    for found in (
        by_reference(made, run, effects),
        by_kernels(made, run, in_process, buckets=3, epochs_per_segment=3, shown=effects),
    ):
        assert [row[3] for row in found["exceptions B t$EX"]] == numbers
