"""Epochs in compressed transactions, of which an applier takes everything: worked by hand."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest

from conflict.engine.inference.replay import resolve
from conflict.engine.ledger.resolution import Resolution, stop_at_returned
from conflict.history.model import Payloads
from conflict.history.timeline import LAST_GROUP, Origin, ReturnedEpoch
from conflict.rules.stops import ServerStop
from tests.conflict.histories import MORE_TABLES, TABLES, counters, history, rows, setups

MAX, TRANS = "NDB$MAX(x)", "NDB$EPOCH_TRANS()"
# B applied A's epoch 1 and logged it in its own epoch 11, which A applied in its epoch 2.
RETURNS = "A:i1=5@1 B:<1@11 A:i2=7@2 A:<11@2"
OF_A = Payloads(frozenset({1, 2, 3}), {2: ReturnedEpoch(1, 1, 1)})


def resolved(text: str, function: str | None = MAX, b: str | None = MAX, **payloads: Payloads) -> Resolution:
    """Resolve a text with what each cluster logged compressed, by its name."""
    made = history(text)
    clusters = tuple(attrs.evolve(each, payloads=payloads.get(each.name, Payloads())) for each in made.clusters)
    return resolve(attrs.evolve(made, clusters=clusters), setups(function, b, "t$EX", tables=TABLES + MORE_TABLES))


class TestStop:
    """The applier that meets an older epoch of its source stops."""

    def test_in_the_compressed_log_of_one_cluster(self):
        """B stops at A's epoch 2 and applies nothing any more; A, which reads a plain log, goes on."""
        found = resolved(f"{RETURNS} B:<2?@12 A:i3=1@3 B:<3?@13 B:i4=4@14 A:<14@4", A=OF_A)
        stop = found.clusters["B"].stop
        assert stop is not None
        assert (stop.kind, stop.error, stop.foreign_epoch) == (ServerStop.RETURNED_EPOCH, 1296, 2)
        assert stop.server == (
            "SQL thread stopped as applying epoch 0/1 (1) from Source ServerId 1 which is lower than previously "
            "applied epoch 0/2 (2)."
        )
        assert rows(found, "B") == [(1, 5, None), (4, 4, None)]
        assert rows(found, "A") == [(1, 5, None), (2, 7, None), (3, 1, None), (4, 4, None)]
        assert (counters(found, "A"), found.clusters["A"].stop) == ({}, None)

    def test_in_the_compressed_log_of_the_other_one(self):
        """A stops at B's epoch 12, in which B had applied the epoch of A that reports B's epoch 11."""
        returned = {12: ReturnedEpoch(0, 11, 2)}
        text = "B:i1=5@11 A:<11@1 A:i2=7@1 B:<1@12 A:<12?@2 B:i3=1@13 A:<13?@3"
        found = resolved(text, B=Payloads(frozenset({11, 12, 13}), returned))
        stop = found.clusters["A"].stop
        assert stop is not None
        assert (stop.kind, stop.foreign_epoch) == (ServerStop.RETURNED_EPOCH, 12)
        assert rows(found, "A") == [(1, 5, None), (2, 7, None)]
        assert (rows(found, "B"), found.clusters["B"].stop) == ([(1, 5, None), (2, 7, None), (3, 1, None)], None)

    def test_not_where_the_log_goes_on(self):
        """B's binlog shows that it took a later epoch: it was made to go on, and did not stop for good."""
        found = resolved(f"{RETURNS} A:i3=1@3 B:<3@13", A=OF_A)
        assert found.clusters["B"].stop is None
        assert rows(found, "B") == [(1, 5, None), (3, 1, None)]

    def test_not_at_an_epoch_of_another_node(self):
        """B reads the log of A's other SQL node, under whose id no older epoch comes."""
        found = resolved(f"{RETURNS} B:<2?@12", A=attrs.evolve(OF_A, returned={2: ReturnedEpoch(1, 1, 3)}))
        assert found.clusters["B"].stop is not None  # which node it read is not known
        made = history(f"{RETURNS} B:<2?@12")
        a, b = made.clusters
        timeline = tuple(
            item if not hasattr(item, "source_server") else attrs.evolve(item, source_server=1) for item in b.timeline
        )
        a = attrs.evolve(a, payloads=attrs.evolve(OF_A, returned={2: ReturnedEpoch(1, 1, 3)}))
        clusters = (a, attrs.evolve(b, timeline=timeline))
        assert resolve(attrs.evolve(made, clusters=clusters), setups(MAX, MAX)).clusters["B"].stop is None

    @pytest.mark.parametrize(("group", "error"), [(0, 1296), (1, 1146), (LAST_GROUP, 1146)])
    def test_operations_before_it_come_first(self, group: int, error: int):
        """B lacks the table of group 1; a row of `ndb_apply_status` before it stops B first, one after it later."""
        made = history("A:in1=5@1 B:<1@11 A:in2=7@2 A:i1=1@2 A:<11@2 B:<2?@12")
        a, b = made.clusters
        a = attrs.evolve(a, payloads=attrs.evolve(OF_A, returned={2: ReturnedEpoch(group, 1, 1)}))
        stop = resolve(attrs.evolve(made, clusters=(a, b)), setups(MAX, "NDB$MAX(none)")).clusters["B"].stop
        assert stop is not None
        assert stop.error == error

    def test_where_it_is_logged(self):
        """The stop names the row of `ndb_apply_status`."""
        origin = Origin("binlog.000001", 890, 700)
        stop = stop_at_returned("B", "A", (951 << 32) + 12, ReturnedEpoch(0, (951 << 32) + 11, 1, origin))
        assert (stop.table, stop.origin) == ("mysql.ndb_apply_status", origin)
        assert stop.message == (
            "epoch 951/12 (4084513898508) is compressed and holds a row for the older epoch 951/11 (4084513898507) "
            "that B skips elsewhere; set ndb_log_transaction_compression = OFF and binlog_transaction_compression = "
            "OFF on A"
        )


class TestReturningChanges:
    """A cluster applies its own changes again."""

    def test_they_are_judged(self):
        """A's insert comes back while the row is there: a conflict of NDB$MAX, whose values are equal."""
        found = resolved("A:i1=5@1 B:<1@11 A:<11@2", B=Payloads(frozenset({11}), transactions={(11, 0): 77}))
        assert counters(found, "A") == {"fn_max": 1}
        assert found.clusters["A"].exceptions["d.t$EX"] == [(1, 2, 11, 1, 1)]
        assert rows(found, "A") == rows(found, "B") == [(1, 5, None)]

    def test_plain_logs_bring_none(self):
        """An applier skips them by their server id."""
        found = resolved("A:i1=5@1 B:<1@11 A:<11@2")
        assert (counters(found, "A"), found.clusters["A"].exceptions) == ({}, {"d.t$EX": []})

    def test_without_a_function_they_overwrite(self):
        """A's update of the row is lost to the insert before it, on A itself, and B gets the older value, too."""
        text = "A:in1=5@1 B:<1@11 A:un1=5>6@2 B:<2@12 A:<11@3 B:<3@13"
        found = resolved(text, B=Payloads(frozenset({11})))
        assert rows(found, "A", "d.n") == [(1, 5, None)]
        assert rows(found, "B", "d.n") == [(1, 5, None)]

    @pytest.mark.parametrize("compressed", ["A", "B", "C"])
    def test_in_a_ring_the_log_that_a_cluster_reads_counts(self, compressed: str):
        """A's insert goes round; A reads C's log, and meets it again only if that one is compressed."""
        made = history("A:i1=5@1 B:<1@11 C:<11@21 A:<21@2")
        epochs = Payloads(frozenset({1, 11, 21}))
        clusters = tuple(
            attrs.evolve(each, payloads=epochs if each.name == compressed else Payloads()) for each in made.clusters
        )
        found = resolve(attrs.evolve(made, clusters=clusters), setups(MAX, MAX, "t$EX", others="C"))
        assert counters(found, "A") == ({"fn_max": 1} if compressed == "C" else {})
        assert [rows(found, name) for name in "ABC"] == [[(1, 5, None)]] * 3

    def test_without_replica_updates_there_are_none(self):
        """With `log_replica_updates=OFF`, B's log has nothing of A's."""
        text = "A:in1=5@1 B:<1@11 A:un1=5>6@2 A:<11@3"
        found = resolved(text, B=Payloads(frozenset({11}), relays=False))
        assert rows(found, "A", "d.n") == [(1, 6, None)]

    def test_a_transaction_of_the_applier(self):
        """What B's applier did is one transaction to A, under the id that B's log gives it."""
        payloads: Mapping[str, Payloads] = {"B": Payloads(frozenset({11}), transactions={(11, 0): 77})}
        found = resolved("A:i1=5@1 A:in2=6@1 B:<1@11 A:<11@2", TRANS, None, **payloads)
        assert counters(found, "A") == {
            "fn_epoch_trans": 1,
            "trans_row_conflict_count": 1,
            "trans_row_reject_count": 2,
            "trans_reject_count": 1,
            "trans_detect_iter_count": 1,
            "trans_conflict_commit_count": 1,
        }
        assert {each.group for each in found.outcomes if each.applier == "A"} == {0}
