"""What may be concluded where binlogs show other effects than were derived."""

from collections.abc import Mapping, Sequence

import attrs

from conflict.history.effects import Effect
from conflict.history.model import Cluster, EpochApply, History
from conflict.history.reconcile import Contradiction, Explanation, Inference, contradictions, infer
from conflict.reference.replay import resolve
from tests.conflict.histories import Setups, history, key, setups

ROW, SECOND = ("d.t", key(1)), ("d.t", key(2))
TRANS = "NDB$EPOCH_TRANS()"
Shown = Mapping[str, Mapping[tuple[int, int], Mapping[tuple[str, bytes], Effect]]]


def differences(made: History, tables: Setups, shown: Shown, clusters: Sequence[Cluster]) -> list[Contradiction]:
    """Resolve, and return where the binlogs show something else."""
    resolution = resolve(attrs.evolve(made, clusters=tuple(clusters)), tables)
    effects = {name: result.effects for name, result in resolution.clusters.items()}
    return contradictions(clusters, effects, {"A": {}, "B": {}, **shown})


def inferred(text: str, shown: Shown, a: str | None = None) -> tuple[list[Cluster], list[Inference]]:
    """Infer from the effects that binlogs show."""
    made, tables = history(text), setups(a)
    return infer(made.clusters, lambda clusters: differences(made, tables, shown, clusters))


def applies(cluster: Cluster) -> list[int]:
    """Return which epochs a cluster applied."""
    return [item.foreign_epoch for item in cluster.timeline if isinstance(item, EpochApply)]


class TestContradictions:
    """Binlogs against derived effects."""

    def found(self, text: str, shown: Shown) -> list[Contradiction]:
        """Return the contradictions of a History without functions."""
        made = history(text)
        return differences(made, setups(), shown, made.clusters)

    def test_none(self):
        """The binlog shows what was derived."""
        assert self.found("A:i1=1@1 B:<1@11", {"B": {(11, 0): {ROW: Effect.CHANGED}}}) == []

    def test_not_shown(self):
        """A row that should have been changed does not show."""
        assert self.found("A:i1=1@1 B:<1@11", {}) == [Contradiction("B", 11, 0, 1)]

    def test_shown_only(self):
        """A row shows that should not have been changed."""
        assert self.found("A:i1=1@1 A:d1=1@1 B:<1@11", {"B": {(11, 0): {ROW: Effect.CHANGED}}}) == [
            Contradiction("B", 11, 0, 1)
        ]

    def test_something_else(self):
        """A row was changed, and shows as deleted; another one is right."""
        shown = {"B": {(11, 0): {ROW: Effect.DELETED, SECOND: Effect.CHANGED}}}
        assert self.found("A:i1=1,i2=1@1 B:<1@11", shown) == [Contradiction("B", 11, 0, 1)]

    def test_causes_come_first(self):
        """A applies B's reaction to A's change, so it comes after B, though A comes first by name."""
        text = "A:i1=1@1 B:<1@11 B:u1=1>2@11 A:<11@2"
        assert [each.place for each in self.found(text, {})] == [("B", 11, 0), ("A", 2, 0)]

    def test_where_the_row_was_changed(self):
        """The cluster's own changes of the row since the epoch apply before are named."""
        text = "A:i1=1,i2=1@1 B:<1@11 B:u1=1>3@12 B:u2=1>3@12 B:u1=3>4@13 A:u1=1>5@2 B:<2@14"
        (found,) = self.found(text, {"B": {(11, 0): {ROW: Effect.CHANGED, SECOND: Effect.CHANGED}}})
        assert found == Contradiction("B", 14, 0, 1, ((12, 0), (13, 0)))


class TestNotApplied:
    """An untraced epoch apply at the end."""

    TEXT = "A:i1=1@1 A:u1=1>2@2 A:u1=2>3@3 B:<1@11 "

    def test_it_cannot_have_happened(self):
        """It would have changed a row, and a change leaves a trace: neither it nor a later one was applied."""
        clusters, answers = inferred(self.TEXT + "B:<2?@12 B:<3?@12", {"B": {(11, 0): {ROW: Effect.CHANGED}}})
        assert applies(clusters[1]) == [1]
        assert [(each.cluster, each.foreign_epoch, each.explanation) for each in answers] == [
            ("B", 2, Explanation.NOT_APPLIED),
        ]
        assert answers[0].candidates == 2

    def test_before_a_trace(self):
        """Epochs are applied in order, so one before a traced one was applied, whatever its derived effect."""
        shown = {"B": {(11, 0): {ROW: Effect.CHANGED}, (12, 0): {ROW: Effect.CHANGED}}}
        clusters, answers = inferred(self.TEXT + "B:<2?@12 B:<3@12", shown)
        assert (applies(clusters[1]), answers) == ([1, 2, 3], [])

    def test_it_changes_nothing(self):
        """Then it may have been applied."""
        text = "A:i1=1@1 A:i2=1@2 A:d2=1@2 B:<1@11 B:<2?@12"
        clusters, answers = inferred(text, {"B": {(11, 0): {ROW: Effect.CHANGED}}})
        assert (applies(clusters[1]), answers) == ([1, 2], [])


class TestJudgedEarlier:
    """Local changes between the pass that found conflicts and the one that committed."""

    TEXT = "A:i1=1,i2=1@1 B:<1@11 A:<11@2 A:u1=1>5@3 B:d1=1,u2=1>9@12 A:d1=5@4 A:<12@5"
    BOTH = {"B": {(11, 0): {ROW: Effect.CHANGED, SECOND: Effect.CHANGED}}}  # noqa: RUF012  # of a test

    def test_explained(self):
        """Both rows show as refreshed, so the transaction was rejected, so row 1 was still there when it was judged."""
        shown = {**self.BOTH, "A": {(5, 0): {ROW: Effect.REFRESHED_ABSENT, SECOND: Effect.REFRESHED}}}
        clusters, answers = inferred(self.TEXT, shown, TRANS)
        # Row 1 was changed in two places, so it can have been judged before either, or after both.
        assert answers == [Inference("A", 12, Explanation.JUDGED_EARLIER, 3, 2)]
        (apply,) = (item for item in clusters[0].timeline if isinstance(item, EpochApply) and item.foreign_epoch == 12)
        assert apply.judged == (4, -1)

    def test_nothing_to_explain(self):
        """The order of the binlog explains what it shows."""
        shown = {**self.BOTH, "A": {(5, 0): {SECOND: Effect.CHANGED}}}
        _, answers = inferred(self.TEXT, shown, TRANS)
        assert answers == []

    def test_not_explained(self):
        """No moment explains that row 2 was deleted: nothing is concluded."""
        shown = {**self.BOTH, "A": {(5, 0): {SECOND: Effect.DELETED}}}
        clusters, answers = inferred(self.TEXT, shown, TRANS)
        assert (answers, clusters) == ([], list(history(self.TEXT).clusters))
