"""What a role and a format make of each function: by hand, from the manual, "NDB$EPOCH2()", and from recordings."""

import pytest

from conflict.rules.deployed import Deployed
from conflict.rules.functions import parse_conflict_function
from conflict.rules.replication_table import Role
from ndb_formats.rules.update_format import UpdateFormat

LETTERS = {
    "N": "lacks_role",
    "S": "as_secondary",
    "P": "ignored",
    "J": "judges",
    "R": "refreshes",
    "T": "rejects_transactions",
    "I": "needs_transaction_ids",
    "M": "marks_reflected",
}
# Under NONE, PRIMARY, SECONDARY and PASS. Without the role that it needs, an applier stops before it judges.
IN_ROLES = {
    "NDB$OLD(x)": "J J J J",
    "NDB$MAX(x)": "J J J J",
    "NDB$MAX_DELETE_WIN(x)": "J J J J",
    "NDB$MAX_INS(x)": "J J J J",
    "NDB$MAX_DEL_WIN_INS(x)": "J J J J",
    "NDB$EPOCH()": "JR JR JR JR",
    "NDB$EPOCH_TRANS()": "JRTI JRTI JRTI JRTI",
    "NDB$EPOCH2()": "NJR JRM S P",
    # A secondary stops at a change without a transaction id, too (recorded).
    "NDB$EPOCH2_TRANS()": "NJRTI JRTIM SI P",
}


@pytest.mark.parametrize("text", IN_ROLES)
@pytest.mark.parametrize("logged", [True, False])
def test_each_function_in_each_role(text: str, logged: bool) -> None:
    """Who judges, refreshes and marks; what is marked as reflected goes back if the server logs the table."""
    function = parse_conflict_function(text)
    for role, letters in zip(Role, IN_ROLES[text].split(), strict=True):
        deployed = Deployed(function, role, UpdateFormat(logged=logged))
        assert "".join(letter for letter, name in LETTERS.items() if getattr(deployed, name)) == letters
        assert deployed.reflects is (logged and "M" in letters)
        assert deployed.judge is (function if "J" in letters else None)
        assert deployed.active is (None if "P" in letters else function)


def test_without_a_function() -> None:
    """No role makes anything of it."""
    for role in (None, *Role):
        deployed = Deployed(None, role)
        assert not any(getattr(deployed, name) for name in (*LETTERS.values(), "reflects", "judge", "active"))


def test_a_role_that_is_not_known() -> None:
    """It neither stops the applier nor takes the function from it; who marks rows is not known."""
    deployed = Deployed(parse_conflict_function("NDB$EPOCH2_TRANS()"), None)
    assert "".join(letter for letter, name in LETTERS.items() if getattr(deployed, name)) == "JRTI"


def test_functions_that_are_set_on_the_primary_alone() -> None:
    """NDB$EPOCH and NDB$EPOCH_TRANS: the cluster that has one is the primary by that."""
    alone = [text for text in IN_ROLES if parse_conflict_function(text).spec.on_primary_alone]
    assert alone == ["NDB$EPOCH()", "NDB$EPOCH_TRANS()"]
