"""Where replicas may have been set back."""

from conflict.history.scheduling.schedule import Hint
from conflict.history.scheduling.summaries import Summary
from conflict.judge.judge import set_back_candidates

EPOCHS = {"A": [Summary(10, (0,), ())], "B": [Summary(100, (0,), ()), Summary(101, (0,), ())]}
REWIND = {"applier": "A", "action": "rewind"}
NEVER = Hint(applied=False)


def test_never():
    """A recording without a rewind has no candidates."""
    assert list(set_back_candidates([{"applier": "A", "action": "stop"}], EPOCHS)) == []


def test_once():
    """After any epoch first, then after each; the applier of B was not."""
    found = [(each["A"], each["B"]) for each in set_back_candidates([REWIND], EPOCHS)]
    assert found == [([{}, {}], [{}]), ([{101: NEVER}, {}], [{}]), ([{}, {}], [{}])]


def test_as_often_as_recorded():
    """Each rewind is tried after each epoch."""
    assert len(list(set_back_candidates([REWIND, REWIND], EPOCHS))) == 9


def test_a_bound():
    """The number of trials is bounded."""
    assert len(list(set_back_candidates([REWIND] * 6, EPOCHS))) == 200
