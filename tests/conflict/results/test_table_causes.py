"""What contradictions of tables point to, from counts that are made up here: the right cause first, or all that fit."""

from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

import conflict
from conflict.results.cause_kinds import CauseKind, LikelyCause, LogFacts
from conflict.results.table_causes import causes_of_tables
from conflict.rules.functions import parse_conflict_function
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import Refusal, RefusalKind, TableSetup
from ndb_formats.schema.create_table import parse_create_table
from tests.corpora import RECORDINGS

FUNCTION, ROLE, PRIMARY = CauseKind.FUNCTION, CauseKind.ROLE, CauseKind.PRIMARY
FILES, DEFINITION, VALUES = CauseKind.FILES, CauseKind.DEFINITION, CauseKind.VALUES
UNLOGGED = CauseKind.UNLOGGED
LESS, MORE = "derived CHANGED, shown nothing", "derived nothing, shown CHANGED"
REFRESHED, NOT_REFRESHED = "derived CHANGED, shown REFRESHED", "derived REFRESHED, shown CHANGED"
UNMARKED, MARKED = "derived CHANGED, shown CHANGED not as reflected", "derived CHANGED, shown CHANGED as reflected"
KEPT = "derived REFRESHED, shown nothing"
OTHER_VALUES = "derived CHANGED, shown CHANGED to other values"
Functions = Mapping[str, str | None]


def causes(
    seen: Mapping[tuple[str, str], str],
    on_a: Functions,
    on_b: Functions | None = None,
    *,
    facts: Mapping[str, LogFacts] | None = None,
) -> tuple[LikelyCause, ...]:
    """
    Return the causes of contradictions.

    Args:
        seen: By cluster and table, which kind of contradiction there is, of one row.
        on_a: By table, its function on A.
        on_b: The same on B; None for that on A.
        facts: What the binlogs hold; nothing that matters if it is not given.
    """
    contradictions: dict[str, dict[str, dict[str, int]]] = {}
    for (cluster, table), kind in seen.items():
        contradictions.setdefault(cluster, {})[f"d.{table}"] = {kind: 1}
    setups = {"A": set_up(on_a), "B": set_up(on_a if on_b is None else on_b)}
    return causes_of_tables(contradictions, {"A": LogFacts(), "B": LogFacts(), **(facts or {})}, setups)


def set_up(functions: Functions) -> dict[str, TableSetup]:
    """Return tables with these functions."""
    return {
        f"d.{name}": TableSetup(
            parse_create_table(f"CREATE TABLE d.{name} (k INT PRIMARY KEY, x INT)"),
            None if text is None else parse_conflict_function(text),
        )
        for name, text in functions.items()
    }


@pytest.mark.parametrize(
    ("function", "kind", "kinds"),
    [
        (None, LESS, (FUNCTION, FILES, DEFINITION)),
        ("NDB$MAX(x)", LESS, (FUNCTION, FILES, DEFINITION)),
        ("NDB$EPOCH()", MORE, (FUNCTION, PRIMARY, FILES, DEFINITION)),
        ("NDB$EPOCH2_TRANS()", MORE, (FUNCTION, ROLE, FILES, DEFINITION)),
        ("NDB$EPOCH2()", UNMARKED, (FUNCTION, ROLE)),
        ("NDB$MAX(x)", OTHER_VALUES, (VALUES, FUNCTION, FILES, DEFINITION)),
        ("NDB$MAX(x)", REFRESHED, (FUNCTION,)),
        ("NDB$EPOCH()", MARKED, (FUNCTION,)),
        ("NDB$EPOCH2()", MARKED, (ROLE,)),
    ],
)
def test_what_contradictions_of_one_kind_point_to(
    function: str | None, kind: str, kinds: tuple[CauseKind, ...]
) -> None:
    """One cause where it alone explains them; else all that do, the likeliest first."""
    (cause,) = causes({("A", "t"): kind}, {"t": function})
    assert (cause.kind, cause.kinds) == (kinds[0], kinds)
    assert ("Cannot tell which of: " in cause.sentence) == (len(kinds) > 1)


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        ("NDB$EPOCH()", (FUNCTION, PRIMARY, UNLOGGED, FILES, DEFINITION)),
        ("NDB$EPOCH_TRANS()", (FUNCTION, PRIMARY, UNLOGGED, FILES, DEFINITION)),
        ("NDB$EPOCH2()", (FUNCTION, ROLE, UNLOGGED, FILES, DEFINITION)),
    ],
)
def test_rejections_by_epoch_alone_can_follow_from_rows_that_were_written_anew(
    function: str, kinds: tuple[CauseKind, ...]
) -> None:
    """OPTIMIZE TABLE gives rows a new epoch; the cluster that applied what was refreshed has no cause of its own."""
    seen = {("A", "t"): "derived DELETED, shown REFRESHED", ("B", "t"): MORE}
    (cause,) = causes(seen, {"t": function}, {"t": None}, facts={"A": LogFacts(refreshed=True)})
    assert (cause.cluster, cause.kinds) == ("A", kinds)
    assert "OPTIMIZE TABLE" in cause.options


def test_other_contradictions_do_not_follow_from_them() -> None:
    """Changes that were applied and that the function rejects; changes on the other cluster that were not refreshed."""
    facts = {"A": LogFacts(refreshed=True)}
    (cause,) = causes({("A", "t"): NOT_REFRESHED}, {"t": "NDB$EPOCH()"}, facts=facts)
    assert UNLOGGED not in cause.kinds
    first, second = causes({("A", "t"): REFRESHED, ("B", "t"): LESS}, {"t": "NDB$EPOCH()"}, {"t": None}, facts=facts)
    assert (first.cluster, second.cluster) == ("A", "B")


def test_no_function_is_said_before_a_missing_file() -> None:
    """What NDB$MAX rejects looks like a missing file where no function is given."""
    (cause,) = causes({("A", "t"): LESS, ("A", "u"): LESS}, {"t": None, "u": None})
    assert cause.tables == ("d.t", "d.u")
    assert cause.sentence == (
        "No conflict function is given, and A did not apply all that it received. Cannot tell which of: a conflict "
        "function was in force that is not given (init, given the binlogs, finds which by trial; "
        "conflict_fn in the run file, --conflict-fn 'TABLE=FUNCTION' or --ndb-replication FILE says it); a file, or "
        "some events, are missing (give all binlog files of both servers; changes under sql_log_bin=0 are in none); "
        "the PRIMARY KEY is not the one that the definition says (--schema, schema in the run file)."
    )


def test_rows_of_a_table_without_a_function_are_refreshed_by_a_transactional_one() -> None:
    """NDB$EPOCH is given for another table; it rejects no transaction."""
    (cause,) = causes({("A", "plain"): REFRESHED}, {"t": "NDB$EPOCH()", "plain": None}, {"t": None, "plain": None})
    assert (cause.kinds, cause.tables) == ((FUNCTION,), ("d.plain",))
    assert "in place of NDB$EPOCH(6), one that rejects whole transactions, these rows among them" in cause.sentence


def test_where_a_transactional_function_is_given_a_file_may_be_missing() -> None:
    """The transaction may be in conflict for a reason that stood in the file."""
    (cause,) = causes({("A", "plain"): REFRESHED}, {"t": "NDB$EPOCH_TRANS()", "plain": None}, {"t": None})
    assert cause.kinds == (FUNCTION, FILES, DEFINITION)


def test_rows_that_a_cluster_refreshed_which_is_no_primary() -> None:
    """NDB$EPOCH2_TRANS rejects transactions on the primary alone, and none is given."""
    facts = {"A": LogFacts(refreshed=True, role=Role.NONE)}
    (cause,) = causes({("A", "plain"): REFRESHED}, {"t": "NDB$EPOCH2_TRANS()", "plain": None}, facts=facts)
    assert cause.kinds == (ROLE, FUNCTION, FILES, DEFINITION)


def test_the_other_cluster_is_the_primary() -> None:
    """A refreshed rows, also of a table without a function, and a function by epoch is given for B alone."""
    given: tuple[Functions, Functions] = {"t": None, "plain": None}, {"t": "NDB$EPOCH_TRANS()", "plain": None}
    (cause,) = causes({("A", "plain"): REFRESHED, ("B", "t"): NOT_REFRESHED}, *given)
    assert cause.kinds == (PRIMARY,)
    assert cause.sentence.endswith("which did not: A was the primary (--primary A).")
    (open_cause,) = causes({("A", "t"): REFRESHED}, *given)
    assert open_cause.kinds == (PRIMARY, FUNCTION, FILES)


def test_a_primary_that_rejects_and_does_not_refresh_has_another_function() -> None:
    """B is given NDB$EPOCH_TRANS; A had NDB$EPOCH, and B NDB$MAX, so the primary is not all that is wrong."""
    (cause,) = causes({("A", "t"): REFRESHED, ("B", "t"): KEPT}, {"t": None}, {"t": "NDB$EPOCH_TRANS()"})
    assert cause.kinds == (PRIMARY, FUNCTION, FILES)


def test_functions_of_the_two_clusters_may_be_exchanged() -> None:
    """A refreshed what NDB$MAX only rejects, and B did not refresh what NDB$EPOCH does."""
    (cause,) = causes({("A", "t"): REFRESHED, ("B", "t"): KEPT}, {"t": "NDB$MAX(x)"}, {"t": "NDB$EPOCH()"})
    assert cause.kinds == (FUNCTION, PRIMARY)


def test_marks_tell_the_role_where_effects_differ_too() -> None:
    """The rows that are contradicted have no mark of their own then; no primary is given."""
    facts = {"A": LogFacts(reflected=True, role=Role.NONE)}
    (cause,) = causes({("A", "t"): LESS, ("B", "t"): MORE}, {"t": "NDB$EPOCH2()"}, facts=facts)
    assert (cause.cluster, cause.kinds) == ("A", (ROLE,))
    assert cause.sentence.endswith("another role was in force (--primary A).")


def test_two_primaries_are_given_and_one_marks_rows() -> None:
    """The role of the other one may be wrong, which changes what the first one does."""
    facts = {"A": LogFacts(reflected=True, role=Role.PRIMARY), "B": LogFacts(role=Role.PRIMARY)}
    (cause,) = causes({("A", "t"): LESS}, {"t": "NDB$EPOCH2_TRANS()"}, facts=facts)
    assert cause.kinds == (FUNCTION, ROLE, FILES, DEFINITION)


def test_a_primary_that_marks_rows_has_the_right_role() -> None:
    """NDB$EPOCH2 for NDB$EPOCH2_TRANS: the role is no cause of it."""
    facts = {"A": LogFacts(reflected=True, role=Role.PRIMARY)}
    (cause,) = causes({("A", "t"): REFRESHED}, {"t": "NDB$EPOCH2()"}, facts=facts)
    assert cause.kinds == (FUNCTION, UNLOGGED, FILES, DEFINITION)


def test_of_two_primaries_the_one_that_marks_no_rows_is_none() -> None:
    """The other one does mark them."""
    facts = {"A": LogFacts(reflected=True, role=Role.PRIMARY)}
    (cause,) = causes({("B", "t"): UNMARKED}, {"t": "NDB$EPOCH2()"}, facts=facts)
    assert (cause.cluster, cause.kinds) == ("B", (ROLE,))


def test_refreshes_without_marks_are_of_a_function_without_roles() -> None:
    """NDB$EPOCH2 for NDB$EPOCH."""
    facts = {"A": LogFacts(refreshed=True, role=Role.PRIMARY)}
    (cause,) = causes({("A", "t"): UNMARKED}, {"t": "NDB$EPOCH2()"}, facts=facts)
    assert cause.kinds == (FUNCTION,)
    assert "NDB$EPOCH or NDB$EPOCH_TRANS was in force, and not NDB$EPOCH2(6) (" in cause.sentence


def test_what_one_cause_explains_hides_what_several_do() -> None:
    """They follow from it."""
    found = causes({("A", "t"): REFRESHED, ("B", "t"): LESS}, {"t": "NDB$MAX(x)"})
    assert [cause.kinds for cause in found] == [(FUNCTION,)]


def test_a_function_that_is_refused_under_the_type_is_one_of_two_causes() -> None:
    """The marks of the rows tell nothing then of a function that is given."""
    refusal = Refusal(RefusalKind.UPDATES_AS_WRITES, 1005, None, "Table d.t configured to log updates as writes.")
    refused = {"d.t": attrs.evolve(set_up({"t": None})["d.t"], refusal=refusal)}
    facts = {"A": LogFacts(reflected=True, role=Role.PRIMARY), "B": LogFacts()}
    (cause,) = causes_of_tables({"A": {"d.t": {MORE: 1}}}, facts, {"A": refused, "B": refused})
    assert cause.kinds == (FUNCTION, CauseKind.BINLOG_TYPE)
    assert "(Table d.t configured to log updates as writes)" in cause.sentence


@pytest.mark.parametrize("function", [None, "NDB$MAX(x)", "NDB$EPOCH()"])
@pytest.mark.parametrize("kind", [LESS, KEPT])
def test_a_table_of_which_nothing_arrives_is_filtered(function: str | None, kind: str) -> None:
    """
    B applied changes of another table, and none of t, which A changed; what differs on A for t follows from it.

    The file of B that has them may be missing, too.
    """
    facts = {
        "A": LogFacts(changed_tables=frozenset({"d.t", "d.u"}), applied_tables=frozenset({"d.t"})),
        "B": LogFacts(applied_tables=frozenset({"d.u"})),
    }
    found = causes({("B", "t"): kind, ("A", "t"): MORE}, {"t": function, "u": None}, facts=facts)
    assert [(each.kind, each.cluster, each.tables, each.cannot_tell) for each in found] == [
        (CauseKind.FILTER, "B", ("d.t",), (CauseKind.FILTER, CauseKind.FILES))
    ]


@pytest.mark.parametrize(
    ("changed", "applied", "kind"),
    [({"d.t"}, {"d.t", "d.u"}, LESS), ({"d.t"}, set(), LESS), ({"d.u"}, {"d.u"}, LESS), ({"d.t"}, {"d.u"}, MORE)],
    ids=["some arrived", "nothing arrived", "nothing was sent", "more arrived"],
)
def test_no_filter(changed: set[str], applied: set[str], kind: str) -> None:
    """Where other rows of the table arrived, or nothing at all, or nothing was sent, a filter does not explain it."""
    facts = {"A": LogFacts(changed_tables=frozenset(changed)), "B": LogFacts(applied_tables=frozenset(applied))}
    found = causes({("B", "t"): kind}, {"t": "NDB$MAX(x)", "u": None}, facts=facts)
    assert CauseKind.FILTER not in {each.kind for each in found}


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_recorded_optimize_is_among_the_causes(engine: str, tmp_path: Path) -> None:
    """A ran OPTIMIZE TABLE, and rejected B's delete of a row that nobody had changed since B had got it."""
    found = conflict.resolve(RECORDINGS / "reports/12-optimize-epoch/run.toml", out=tmp_path / "out", engine=engine)
    (cause,) = found.run["likely_causes"]
    assert (cause["cluster"], cause["tables"]) == ("A", ["shop.items"])
    assert UNLOGGED.value in cause["cannot_tell"]
    assert found.summary.contradicted == 2
