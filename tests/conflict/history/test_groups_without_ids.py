"""Groups of an epoch whose events have no transaction ids: by hand, in the order that recordings show."""

import pytest

from conflict.history.row_identities import GroupPart, GroupsWithoutIds
from tests.conflict.history.test_epochs import epoch_of
from tests.conflict.raw_events import OTHER, REFLECTED, REFRESH, Raw, delete, insert, status, update

PARTS = {"o": GroupPart.OWN, "a": GroupPart.ARRIVING, "s": GroupPart.STATUS, "f": GroupPart.REFRESH}


@pytest.mark.parametrize(
    ("events", "groups"),
    [
        ("ooo", "111"),  # own transactions cannot be told apart
        ("aas", "111"),
        ("asf", "111"),
        ("sf", "11"),
        ("asasf", "11222"),  # each row of ndb_apply_status ends what arrived with its epoch
        ("ssf", "122"),
        ("sfas", "1122"),
        ("oasoas", "122344"),  # own changes before, between and after
        ("afs", "111"),  # a refresh of an epoch whose row comes after it
        ("fs", "11"),
        ("of", "12"),
    ],
)
def test_order(events: str, groups: str) -> None:
    """o own, a applied or reflected, s ndb_apply_status of the other cluster, f refresh."""
    numbering = GroupsWithoutIds()
    assert "".join(str(numbering.group_of(PARTS[each])[1]) for each in events) == groups


def test_of_a_binlog() -> None:
    """What arrived with an epoch, and its refreshes, are of its group; what came after it is a transaction."""

    def arrived(k: int) -> Raw:
        return update(k, 5, transaction=None, author=OTHER)

    epoch = epoch_of(
        arrived(1),
        status(OTHER, 7),
        insert(2, 5, transaction=None, flags=REFRESH),
        arrived(3),
        update(4, 5, transaction=None, flags=REFLECTED),
        status(OTHER, 8),
        delete(1, transaction=None),
    )
    assert [(each.group, each.epoch) for each in epoch.applied] == [(0, 7), (1, 8)]
    assert [group for group, _ in epoch.consequences] == [0, 0, 1, 1]
    assert [each.group for each in epoch.transactions] == [2]
