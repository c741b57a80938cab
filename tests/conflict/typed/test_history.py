"""Histories as they are typed: the order that follows, what is refused, and how they look."""

from pathlib import Path
from typing import Any

import pytest

import conflict
from conflict import History
from conflict.errors import ConfigurationError
from conflict.typed.steps import apply, delete, insert, transaction, update
from ndb_formats.errors import SchemaError

TYPED = History(
    start=["insert 1 v=0"],
    A=["update 1 v=5", "apply 1", "4: delete 1"],
    B=["update 1 v=7", "apply 1", "rewind", "apply 2"],
)


def test_texts_and_values_are_the_same() -> None:
    """A History of texts equals the one of functions."""
    found = History(
        start=[insert(1, v=0)],
        A=[update(1, v=5), apply(1), transaction(delete(1), epoch=4)],
        B=[update(1, v=7), apply(1), "rewind", apply(2)],
    )
    assert found == TYPED


def test_steps_that_can_know_nothing_of_each_other_stand_side_by_side() -> None:
    """A row of the schedule has the steps that do not depend on each other."""
    rows = [(each.row, each.cluster, each.number) for each in TYPED.placed]
    assert rows == [(1, "A", 1), (1, "B", 1), (2, "A", 2), (2, "B", 2), (3, "A", 3), (3, "B", 3), (4, "B", 4)]


def test_a_history_printed_is_its_schedule() -> None:
    """The rows at first, then the steps, one column for each cluster."""
    lines = [line.split() for line in str(TYPED).splitlines() if line.strip()]
    assert lines[3] == ["start", "row", "1:", "v=0", "x=NULL", "row", "1:", "v=0", "x=NULL"]
    assert lines[4] == ["1", "1:", "update", "1", "v=5", "1:", "update", "1", "v=7"]
    assert lines[-1] == ["4", "3:", "apply", "2"]


def test_a_history_in_a_notebook_is_two_lanes() -> None:
    """The picture has a square for each commit, and a circle for each apply and for the replica that is set back."""
    shown = TYPED._repr_html_()
    assert shown.startswith("<svg")
    assert shown.count('<rect x="') == 3
    assert shown.count("<circle") == 4
    assert "update 1 v=7" in shown


def test_a_history_is_what_its_repr_says() -> None:
    """What is shown can be typed."""
    assert eval(repr(TYPED)) == TYPED  # that is what it is for
    assert "A=['update 1 v=5', 'apply 1', '4: delete 1']" in repr(TYPED)


def test_an_apply_takes_the_next_epoch_or_all_up_to_one() -> None:
    """`apply` without a number takes the next epoch."""
    found = History(A=["insert 1", "insert 2", "insert 3"], B=["apply", "apply 3"])
    assert [step.foreign_epoch for step in found.lanes["B"]] == [1 << 32, 3 << 32]  # type: ignore[union-attr]
    assert [each.source_step for each in found.resolve().judged] == [1, 2, 3]


def test_a_settled_history_has_applied_everything() -> None:
    """The rest is applied on both clusters, and what that makes, too."""
    history = History(start=["insert 1 v=0"], A=["update 1 v=5"], B=["update 1 v=7"])
    assert history.resolve("NDB$EPOCH()").unsettled == {"A": 1, "B": 1}
    found = history.settled().resolve("NDB$EPOCH()")
    assert found.converged
    assert found.rows("B") == [{"id": 1, "v": 5, "x": None}]


def test_clusters_have_any_name() -> None:
    """The names of the clusters are those of the arguments."""
    found = History(london=["insert 1"], paris=["apply 1"]).resolve("NDB$EPOCH()", primary="paris")
    assert found.rows("paris") == found.rows("london")


TABLES = "CREATE TABLE a (id INT PRIMARY KEY, v INT NOT NULL); CREATE TABLE b (id INT PRIMARY KEY)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"A": []}, "1 clusters are given; give two, as in A=[...], B=[...]"),
        ({"A": "insert 1", "B": []}, "the steps of A are one text; give a list of steps: A=['insert 1']"),
        ({"A": [5], "B": []}, "step 1 of A: 5 is no step"),
        ({"A": ["insert 1", "insrt 2"], "B": []}, "step 2 of A: cannot read 'insrt 2'"),
        ({"A": ["insert 1 w=1"], "B": []}, "step 1 of A (insert 1 w=1): table d.t has no column w"),
        ({"A": ["insert 1 x=-1"], "B": []}, "step 1 of A (insert 1 x=-1): -1 is no value of column x, int unsigned"),
        ({"A": ["insert 1 id=2"], "B": []}, "column id belongs to the key"),
        ({"A": ["insert 1 v=1 V=2"], "B": []}, "a column is given twice"),
        ({"A": ["insert (1, 2)"], "B": []}, "the key of d.t is id; 2 values are given for it"),
        ({"A": ["insert u 1"], "B": []}, "u is no table; there are d.t"),
        ({"A": [transaction()], "B": []}, "the transaction changes nothing"),
        ({"A": ["update 1 v=1"], "B": []}, "no step inserts this row"),
        ({"A": ["3: insert 1", "2: insert 2"], "B": []}, "epochs never fall"),
        ({"A": ["apply"], "B": []}, "the other cluster has no epoch that could be applied"),
        ({"A": ["apply 3"], "B": ["insert 1"]}, "the other cluster has no epoch 3; it has 1"),
        (
            {"A": ["apply 1", "apply 1"], "B": ["insert 1"]},
            "an applier that is to apply epochs again needs a step rewind",
        ),
        (
            {"A": ["apply 1"], "B": ["apply 1"]},
            "step 1 of A (1: apply 1) and step 1 of B (1: apply 1) wait for each other",
        ),
        ({"start": ["update 1 v=1"], "A": [], "B": []}, "row 1 of start"),
        ({"start": ["insert 1", "insert 1"], "A": [], "B": []}, "row 2 of start (insert 1): the row is there already"),
        ({"tables": TABLES, "A": ["insert 1"], "B": []}, "column v has no constant default; give it a value"),
        ({"tables": TABLES, "A": ["insert 1 v=NULL"], "B": []}, "column v is NOT NULL"),
        ({"tables": "CREATE TABLE t (v INT)", "A": [], "B": []}, "table d.t has no primary key"),
        ({"tables": "CREATE TABLE t (v INT PRIMARY KEY) ENGINE=InnoDB", "A": [], "B": []}, "is of engine INNODB"),
        ({"tables": "", "A": [], "B": []}, "no CREATE TABLE statement"),
    ],
)
def test_what_cannot_be_typed(arguments: dict[str, Any], message: str) -> None:
    """The message names the step, and says what to do."""
    with pytest.raises((ConfigurationError, SchemaError)) as error:
        History(**arguments)
    assert message in str(error.value)


def test_a_generated_column_is_left_out() -> None:
    """What the server computes is not given."""
    tables = "CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT AS (v + 1) VIRTUAL)"
    with pytest.raises(ConfigurationError, match="column w is generated; leave it out"):
        History(tables=tables, A=["insert 1 w=1"], B=[])
    found = History(tables=tables, A=["insert 1 v=1"], B=["apply 1"]).resolve()
    assert found.rows("B") == [{"id": 1, "v": 1}]


def of_one_row() -> History:
    """Two updates of a row, of which neither cluster had seen the other's; that of B commits later."""
    return History(
        start=["insert 1 v=0 x=1"],
        A=["update 1 v=5 x=2", "apply 1"],
        B=["update 1 v=7 x=2", "apply 1"],
    )


def test_a_resolver_sees_when_own_changes_committed() -> None:
    """Under last writer wins, the later update stays on both clusters, and the earlier one is lost."""
    found = of_one_row().resolve("last_writer")
    assert found.rows("A") == found.rows("B") == [{"id": 1, "v": 7, "x": 2}]
    assert [each.cluster for each in found.lost] == ["A"]


@pytest.mark.parametrize("function", ["last_writer", "first_writer()"])
def test_a_run_file_names_a_resolver(function: str, tmp_path: Path) -> None:
    """What `to_binlogs` writes is resolved as the History is."""
    history = of_one_row()
    result = conflict.resolve(history.to_binlogs(tmp_path / "run", function))
    for name in "AB":
        assert result.rows(name, "d.t").to_pylist() == history.resolve(function).rows(name)


def test_a_run_file_cannot_name_a_value(tmp_path: Path) -> None:
    """A resolver that has no module is refused by its name, and no folder is left."""

    @conflict.resolver
    def mine(row: conflict.FoundRow, _: conflict.IncomingChange) -> conflict.Decision:
        return conflict.APPLY if row.exists else conflict.IGNORE

    with pytest.raises(ConfigurationError, match="resolver mine, which is a value"):
        of_one_row().to_binlogs(tmp_path / "run", mine)
    assert not (tmp_path / "run").exists()
