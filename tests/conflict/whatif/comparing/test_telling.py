"""What a comparison answers, and when it does not."""

import pytest

from conflict.whatif.comparing.part import _headline
from conflict.whatif.comparing.telling import _best

PAIRS = [
    {"function": "NDB$MAX(x)", "lost_updates": 3, "differing_rows": 0, "stops": []},
    {"function": "NDB$EPOCH(6)", "lost_updates": 9, "differing_rows": 0, "stops": []},
]


@pytest.mark.parametrize(
    ("compared", "changes", "said"),
    [
        (30, 30, "Of what NDB offers, NDB$MAX(x) loses least: 3 of 30 (10.0 %)."),
        (
            30,
            100,
            "Of what NDB offers, NDB$MAX(x) loses least: 3 of 30 (10.0 %); the other 70 could not be compared.",
        ),
        (66, 3444, "Which function loses least is not known: 66 of 3,444 changes could be compared."),
        (0, 10, ""),
    ],
)
def test_which_function_loses_least(compared: int, changes: int, said: str) -> None:
    """An answer says how many changes it leaves out; there is none where that is nearly all of them."""
    assert _best({"changes": changes, "compared_changes": compared, "pairs": PAIRS}, PAIRS) == said
    answer = _headline((compared, changes), PAIRS[:1], PAIRS[1:]).answer
    assert answer == ("NDB$MAX(x)" if compared == 30 else "")
