"""What makes a result doubtful, in sentences: alarms first, and what holds for both clusters once."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from conflict.results.doubts import doubts_of

REPLAYED = "No conflict function is given, and {} did not apply all that it received."
OPTIONS = "a conflict function was in force; a file is missing"
SAID = f"Cannot tell which of: {OPTIONS}."


def document(causes: Sequence[Mapping[str, Any]] = (), *, differing: int = 0, compared: int = 5) -> dict[str, Any]:
    """Return the part of `run.json` that doubts are made of."""
    return {
        "compared_with_binlogs": compared,
        "contradicted_by_binlogs": differing,
        "likely_causes": causes,
        "log_remarks": [],
        "definition_notes": ["row 'd', 'tt', 0 of mysql.ndb_replication matches no table"],
        "unexplained_changes": {"A": 1},
        "epochs_not_examined": 0,
        "epochs_left_out": {},
        "binlog_errors": {},
    }


def cause(cluster: str, kind: str, shown: str, *tables: str, options: str = "") -> dict[str, Any]:
    """Return a likely cause."""
    return {"cluster": cluster, "kind": kind, "tables": tables, "shown": shown, "options": options}


def test_what_holds_for_both_clusters_is_said_once() -> None:
    """With the tables of both."""
    causes = [
        cause("A", "conflict function", REPLAYED.format("A"), "d.t", options=OPTIONS),
        cause("B", "conflict function", REPLAYED.format("B"), "d.t", "d.u", options=OPTIONS),
    ]
    (said,) = (each for each in doubts_of(document(causes, differing=2)) if each.label.startswith("Likely"))
    assert str(said) == (
        "Likely cause (d.t, d.u): No conflict function is given, and A did not apply all that it received. The same on "
        f"B. {SAID}"
    )


def test_causes_that_fit_what_each_cluster_did_are_listed_once() -> None:
    """A and B did different things."""
    causes = [
        cause("A", "conflict function", "A rejected what NDB$MAX(x) applies.", "d.t", options=OPTIONS),
        cause("B", "conflict function", "B applied what NDB$MAX(x) rejects.", "d.t", options=OPTIONS),
    ]
    (said,) = (each for each in doubts_of(document(causes, differing=2)) if each.label.startswith("Likely"))
    assert said.text == f"A rejected what NDB$MAX(x) applies. B applied what NDB$MAX(x) rejects. {SAID}"


def test_a_cause_of_an_older_result_is_its_sentence() -> None:
    """Such a result has neither what is shown nor options apart."""
    older = {"cluster": "A", "kind": "role", "tables": ["d.t"], "sentence": "A marked rows as reflected."}
    (said,) = (each for each in doubts_of(document([older], differing=2)) if each.label.startswith("Likely"))
    assert str(said) == "Likely cause (d.t): A marked rows as reflected."


def test_causes_that_differ_stay_apart() -> None:
    """The name of a cluster is a word of its own: ``A`` is no part of another name or word."""
    causes = [
        cause("A", "role", "A marked rows as reflected: another role was in force (--primary A)."),
        cause("AB", "role", "AB marked rows as reflected: another role was in force (--primary AB)."),
        cause("B", "role", "B did not mark rows as reflected: another role was in force."),
    ]
    said = [each.text for each in doubts_of(document(causes, differing=2)) if each.label.startswith("Likely")]
    assert said == [causes[0]["shown"] + " The same on AB.", causes[2]["shown"]]


@pytest.mark.parametrize(
    ("causes", "differing", "alarms"),
    [
        ((), 0, 0),
        ((), 2, 2),  # the contradiction, and the note, which may be its cause
        ((cause("A", "role", "A marked rows as reflected."),), 2, 3),
        ((cause("A", "binlog_type", "The images are not those of the type."),), 0, 2),
        ((cause("A", "row slice", "A logs one of 2 slices."),), 0, 0),
    ],
)
def test_alarms_come_before_all_other_doubts(causes: Sequence[Mapping[str, Any]], differing: int, alarms: int) -> None:
    """What contradicts, and the likely causes of it."""
    doubts = doubts_of(document(causes, differing=differing))
    assert [each.alarm for each in doubts] == [True] * alarms + [False] * (len(doubts) - alarms)
    assert (doubts[0].label == "The binlogs contradict the run as it is configured") == bool(alarms)
