"""
What a run says first with each wrong option: the right cause, or all that fit; never a wrong one.

The long check prints how often each is said. WRONG_OPTIONS=FOLDER takes all recordings below a folder instead of a few.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conflict.wrong_options import OPTIONS, Said, answers, counts, table_text
from tests.corpora import RECORDINGS

# Recordings of every function with conflicts; of transactions, tables without a function, definitions that change.
FEW = (
    *("conflict/epoch/hot_3020_type9", "conflict/epoch/symmetric_type7", "conflict/epoch2/random_27_type7"),
    *("conflict/epoch_trans/hot_3020_type8", "conflict/epoch2_trans/hot_3020_type6", "conflict/max/random_27_type7"),
    *("conflict/max_ins/concurrent_5021_type7", "conflict/max_del_win_ins/concurrent_5020_type7"),
    *("conflict/max_delete_win/concurrent_5021_type7", "conflict/old/random_26_type6"),
    *("everyday/epoch/ddl_add_column_copy_type8", "everyday/epoch2/ddl_add_column_type8"),
)


def recordings() -> Sequence[Path]:
    """Return the recordings of the long check."""
    folder = os.environ.get("WRONG_OPTIONS")
    if folder is None:
        return [RECORDINGS / name for name in FEW]
    return sorted(
        file.parent for part in ("conflict", "everyday") for file in Path(folder, part).glob("*/*/scenario.json")
    )


@pytest.mark.slow
def test_no_wrong_cause_is_named_first(capsys: pytest.CaptureFixture[str]) -> None:
    """With every wrong option on many recordings."""
    found = list(answers(recordings(), OPTIONS))
    with capsys.disabled():
        sys.stdout.write(f"\n{table_text(counts(found))}\n")
    assert [answer for answer in found if answer.said is Said.WRONG] == []


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize(
    ("name", "option", "detail", "said", "words"),
    [
        ("max/random_27_type7", "function left out", "all", Said.CANNOT_TELL, "No conflict function is given, and"),
        ("epoch2_trans/hot_3020_type6", "other function", "NDB$EPOCH2", Said.RIGHT, "in place of NDB$EPOCH2(6), one"),
        ("epoch_trans/hot_3020_type8", "other function", "NDB$EPOCH", Said.RIGHT, "in place of NDB$EPOCH(6), one that"),
        ("epoch2/random_27_type7", "no primary", None, Said.RIGHT, "another role was in force (--primary A)"),
        ("epoch_trans/hot_3020_type8", "other primary", None, Said.RIGHT, "A was the primary (--primary A)"),
    ],
)
def test_what_is_said_of_a_wrong_option(
    name: str, option: str, detail: str | None, said: Said, words: str, engine: str
) -> None:
    """By both engines."""
    wanted = [each for each in OPTIONS if each.name == option]
    found = list(answers([RECORDINGS / "conflict" / name], wanted, engine, detail))
    assert [answer.said for answer in found] == [said]
    assert words in found[0].first
