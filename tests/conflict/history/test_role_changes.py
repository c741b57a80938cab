"""Changes of a role that a binlog shows: by the flags of what an applier logs."""

import pytest

from conflict.history.epochs import AppliedEpoch, BinlogEpoch
from conflict.history.roles import RoleChange, ShownChange, possible_changes, shown_changes, with_roles
from conflict.history.timeline import EpochApply
from conflict.rules.replication_table import Role
from tests.conflict.histories import setups
from tests.conflict.history.reading.test_epochs_by_content import changes

PRIMARY, SECONDARY = Role.PRIMARY, Role.SECONDARY


def epochs(*texts: str) -> list[BinlogEpoch]:
    """Return epochs 1, 2, 3 and so on, in which an applier of A made these changes for epochs 11, 12, 13 of B."""
    return [
        BinlogEpoch(number, (), (AppliedEpoch(0, 2, number + 10),), tuple((0, each) for each in changes(text)))
        for number, text in enumerate(texts, start=1)
    ]


def shown(role: Role, *texts: str, function: str = "NDB$EPOCH2()") -> list[ShownChange]:
    """Return what the binlog shows of the role of A."""
    return shown_changes(epochs(*texts), role, setups(function, function)["A"], 2)


@pytest.mark.parametrize(
    ("role", "texts", "expected"),
    [
        (PRIMARY, ("!i1=1", "u1=1>2"), [ShownChange(11, 12, PRIMARY, SECONDARY)]),
        (SECONDARY, ("u1=1>2", "u2=1>2", "!i1=1"), [ShownChange(12, 13, SECONDARY, PRIMARY)]),
        (
            PRIMARY,
            ("!i1=1", "u1=1>2", "!i1=1"),
            [ShownChange(11, 12, PRIMARY, SECONDARY), ShownChange(12, 13, SECONDARY, PRIMARY)],
        ),
        (PRIMARY, ("!i1=1", "un1=1>2", "!i1=1"), []),  # table n has no function
        (PRIMARY, ("u1=1>2", "!i1=1"), []),  # it was another role from the start
        (Role.PASS, ("u1=1>2", "!i1=1"), []),
    ],
)
def test_shown_changes(role: Role, texts: tuple[str, ...], expected: list[ShownChange]) -> None:
    """A refresh or a reflected row shows a primary, other changes of a table with roles show none."""
    assert shown(role, *texts) == expected


def test_functions_without_roles_show_nothing() -> None:
    """NDB$EPOCH refreshes rows too."""
    assert shown(PRIMARY, "!i1=1", "u1=1>2", function="NDB$EPOCH()") == []


def test_refreshes_of_whole_transactions_show_nothing() -> None:
    """A secondary refreshes rows of a table with roles, too, if another table rejects their transaction."""
    other = {f"other.{name}": each for name, each in setups("NDB$EPOCH_TRANS()", None)["A"].items()}
    own = {**setups("NDB$EPOCH2_TRANS()", "NDB$EPOCH2_TRANS()")["A"], **other}
    texts = ("u1=1>2", "!i1=1", "u2=1>2")
    assert shown_changes(epochs(*texts), SECONDARY, own, 2) == []
    assert len(shown(SECONDARY, *texts, function="NDB$EPOCH2_TRANS()")) == 2


def test_possible_changes() -> None:
    """After the last epoch of the old role, or after one between it and the first of the new role."""
    found = possible_changes([ShownChange(11, 14, PRIMARY, SECONDARY)], [10, 11, 12, 13, 14, 15])
    assert found == [(RoleChange(number, SECONDARY),) for number in (11, 12, 13)]
    assert possible_changes([], [10, 11]) == [()]


def test_with_roles() -> None:
    """The applier was started again in the new role, and so forgot pass TRACK."""
    applies = [EpochApply(number, 0, "B", number + 10) for number in (1, 2, 3)]
    found = with_roles(applies, [RoleChange(11, SECONDARY)])
    assert [(each.role, each.restarted) for each in found] == [(None, False), (SECONDARY, True), (SECONDARY, False)]
