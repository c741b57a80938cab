"""Likely causes of contradictions, from counts that are made up here."""

from conflict.results.cause_kinds import CauseKind, LogFacts
from conflict.results.contradictions import OTHER_VALUES
from conflict.results.likely_causes import likely_causes
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
