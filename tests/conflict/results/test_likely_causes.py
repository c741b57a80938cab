"""Likely causes of contradictions, from counts that are made up here."""

import attrs

from conflict.engine.ledger.contradictions import OTHER_VALUES
from conflict.results.cause_kinds import CauseKind, LogFacts
from conflict.results.likely_causes import likely_causes
from conflict.rules.functions import parse_conflict_function
from conflict.rules.table_setup import TableSetup
from ndb_formats.schema.create_table import parse_create_table

KINDS = {"values": f"derived CHANGED, shown {OTHER_VALUES}", "refreshed": "derived CHANGED, shown REFRESHED"}


def causes(**counts: int) -> list[CauseKind]:
    """Return what contradictions of a table without a function point to."""
    table = parse_create_table("CREATE TABLE d.t (k INT PRIMARY KEY, v INT)")
    facts = {name: LogFacts(changes=9, applied=3, effects=9) for name in "AB"}
    kinds = {KINDS[name]: count for name, count in counts.items()}
    found = likely_causes({"A": {"d.t": kinds}}, facts, {"A": {"d.t": TableSetup(table)}, "B": {}})
    return [cause.kind for cause in found]


def test_other_values_follow_from_a_function_that_was_not_declared() -> None:
    """They are a cause of their own only where most contradictions are of values."""
    assert causes(values=3) == [CauseKind.VALUES]
    assert causes(refreshed=98, values=3) == [CauseKind.FUNCTION]
    assert causes(refreshed=3, values=3) == [CauseKind.FUNCTION, CauseKind.VALUES]


def test_a_function_by_epoch_was_not_in_force_where_no_row_was_refreshed() -> None:
    """It is said once of both tables, with what the cluster without a function did; and not if a row was refreshed."""
    kinds = {
        "A": {
            "d.t": {"derived REFRESHED, shown CHANGED": 5, "derived CHANGED, shown nothing": 1},
            "d.u": {"derived REFRESHED, shown nothing": 2},
        },
        "B": {"d.t": {"derived CHANGED, shown nothing": 7}},
    }
    tables = {name: parse_create_table(f"CREATE TABLE {name} (k INT PRIMARY KEY, v INT)") for name in ("d.t", "d.u")}
    given = {name: TableSetup(table, parse_conflict_function("NDB$EPOCH()")) for name, table in tables.items()}
    setups = {"A": given, "B": {name: TableSetup(table) for name, table in tables.items()}}
    facts = {name: LogFacts(changes=9, applied=3, effects=9) for name in "AB"}
    (cause,) = likely_causes(kinds, facts, setups)
    assert (cause.cluster, cause.tables, cause.cannot_tell[0]) == ("A", ("d.t", "d.u"), CauseKind.FUNCTION)
    assert cause.sentence.startswith(
        "No applier refreshed a row, which every NDB$EPOCH function does on a conflict, and NDB$EPOCH(6) is given. "
    )
    refreshing = {**facts, "A": attrs.evolve(facts["A"], refreshed=True)}
    first, second = likely_causes(kinds, refreshing, setups)
    assert first.sentence.startswith("A rejected what NDB$EPOCH(6) applies and applied what NDB$EPOCH(6) rejects. ")
    assert (first.tables, second.cluster) == (("d.t", "d.u"), "B")
