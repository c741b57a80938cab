"""Operations put into quiet recordings: nothing is silent."""

from __future__ import annotations

import random
import re

import pytest

from tests.faults.planted import PLANTS, Noticed, Tally, judged, table_of

# What else may become of a fault than that it is named and all that is said is right.
ALLOWED = {
    # Nobody can know what an incident lost: it is named with exit code 3, and figures are those of the logs.
    "incident, epochs lost": {Noticed.LOST, Noticed.NAMED_WRONG},
    # Images are compared where they carry the same columns; what becomes of the row is right all the same.
    "hidden change before an update": {Noticed.INVISIBLE},
    "hidden change before a delete": {Noticed.INVISIBLE},
    "hidden change, no byte differs": {Noticed.INVISIBLE},
}


@pytest.mark.parametrize("kind", ["incident, nothing lost", "missing epochs", "skipped epoch"])
def test_a_fault_is_named(kind: str) -> None:
    """At one place."""
    for _, engine, noticed, why in judged(kind, 1, 1):
        assert noticed is Noticed.NAMED, (engine, why)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLANTS)
def test_nothing_is_silent(kind: str) -> None:
    """At ten places."""
    seed = random.randrange(1 << 32)
    tally, wrong = Tally(), []
    for planted, engine, noticed, why in judged(kind, seed, 10):
        tally[planted, engine, noticed] += 1
        if noticed is not Noticed.NAMED and noticed not in ALLOWED.get(kind, ()) and not _shows_nothing(kind, why):
            wrong.append((engine, noticed, why))
    assert tally
    assert not wrong, f"seed {seed}\n{table_of(tally)}"


def _shows_nothing(kind: str, why: str) -> bool:
    """Whether an epoch was skipped that alone would have shown something of an applier: that is one of the reasons."""
    return kind == "skipped epoch" and re.search(r"causes \[\('[AB]', 'log_replica_updates', \(\)\)\]", why) is not None
