"""
Which texts are equal, as a real MySQL server says: random pairs under every collation that is known exactly.

`make test-mysql` runs this; the name keeps it out of other test runs. `COLLATION_PAIRS` is how many pairs each
collation gets, `COLLATIONS` which ones, with blanks between; `SEED` repeats a run, and is printed with what was found.
See docs/keys.md.
"""

import os
import random
import sys

import pytest

from ndb_formats.types.charsets import charset_of_collation
from ndb_formats.types.collation_names import collation_of
from ndb_formats.types.collations import comparison_of, is_exact
from tests.mysql_server.random_pairs import PairMaker
from tests.mysql_server.server import Server, given_server

PAIRS = int(os.environ.get("COLLATION_PAIRS", "500"))
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
KNOWN = [found.name for number in range(1, 400) if (found := collation_of(number)) is not None]
# The collation `binary` is of bytes, not of texts.
EXACT = [name for name in KNOWN if is_exact(name) and name != "binary"]
COLLATIONS = os.environ.get("COLLATIONS", "").split() or EXACT
_AT_ONCE = 5_000


@pytest.fixture(scope="module")
def server() -> Server:
    """Return the server, or end the run with what is missing."""
    return given_server()


def equal_on(server: Server, collation: str, pairs: list[tuple[bytes, bytes]]) -> list[bool | None]:
    """Return what the server says of pairs; None if one is no text in the character set."""
    charset, answers = charset_of_collation(collation), list[bool | None]()
    one, two = (f"CONVERT({column} USING {charset}) COLLATE {collation}" for column in ("column_0", "column_1"))
    for start in range(0, len(pairs), _AT_ONCE):
        rows = ",".join(f"ROW(x'{a.hex()}',x'{b.hex()}')" for a, b in pairs[start : start + _AT_ONCE])
        lines = server.run(f"SELECT {one} = {two} FROM (VALUES {rows}) AS pairs").split()
        answers += [None if line == "NULL" else line == "1" for line in lines]
    return answers


@pytest.mark.parametrize("collation", COLLATIONS)
def test_random_pairs(server: Server, collation: str, capsys: pytest.CaptureFixture[str]):
    """The keys of two texts are equal if and only if the server says that the texts are."""
    pairs = PairMaker(collation, SEED).pairs(PAIRS)
    comparison, answers = comparison_of(collation), equal_on(server, collation, pairs)
    wrong = [
        (one.hex(), two.hex(), answer)
        for (one, two), answer in zip(pairs, answers, strict=True)
        if answer is not None and (comparison.key(one) == comparison.key(two)) is not answer
    ]
    asked = sum(answer is not None for answer in answers)
    with capsys.disabled():
        equal = sum(map(bool, answers))
        sys.stdout.write(f"\n{collation}: seed {SEED}, {asked} pairs, {equal} equal, {len(wrong)} wrong ")
    assert asked > 0.9 * len(pairs), f"seed {SEED}: the server reads {asked} of {len(pairs)} pairs"
    assert not wrong, f"seed {SEED}: {len(wrong)} of {asked} pairs differ, such as {wrong[:5]}"
    assert any(answers), f"seed {SEED}: no pair is equal, so nothing was tried"
