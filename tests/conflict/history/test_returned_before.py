"""What had come back to a cluster before the first epoch that the other one's log holds."""

import pytest

from conflict.config.configuration import ClusterConfiguration, Links, LoggingServer
from conflict.history.epochs import AppliedEpoch
from conflict.history.scheduling.start import returned_before
from conflict.history.scheduling.summaries import Summary

PAIR = Links((ClusterConfiguration("A", (LoggingServer(1),)), ClusterConfiguration("B", (LoggingServer(2),))))


def epoch(number: int, *applied: tuple[int, int]) -> Summary:
    """Return an own epoch in which epochs of another server were applied, each in a group of its own."""
    return Summary(number, (), tuple(AppliedEpoch(group, *each) for group, each in enumerate(applied)))


@pytest.mark.parametrize(
    ("a", "b", "returned"),
    [
        # B's log starts at 100; A applied its epoch 99, which is in no log. B's log shows A's epochs from 13 on, so
        # B had applied 10 to 12 before, and told A so by then.
        ([epoch(10), epoch(11), epoch(12, (2, 99)), epoch(13), epoch(14, (2, 100))], [epoch(100, (1, 13))], 12),
        # A applied nothing that is older than B's log: what came back is in the logs.
        ([epoch(10), epoch(14, (2, 100))], [epoch(100, (1, 13))], 0),
        # B's log shows nothing of A.
        ([epoch(10), epoch(12, (2, 99))], [epoch(100)], 0),
        # A's own log starts with the first epoch that B's shows.
        ([epoch(13, (2, 99))], [epoch(100, (1, 13))], 0),
        ([epoch(13, (2, 99))], [], 0),
    ],
    ids=["earlier", "not earlier", "nothing shown", "no older epoch", "no log"],
)
def test_what_had_come_back(a: list[Summary], b: list[Summary], returned: int) -> None:
    """It is A's last epoch before the first one that B's log shows as applied, if A's log starts earlier."""
    assert returned_before(PAIR, {"A": a, "B": b}, "A") == returned
