"""Recordings of real clusters as typed Histories: resolved, they end as the clusters did."""

from functools import partial
from pathlib import Path

import pytest
from conflict.history.definitions_over_time import make_run

from conflict import History
from conflict.engine.reference.replay import resolve
from conflict.errors import ConfigurationError
from conflict.history.scheduling.hints import hints_of_steps
from conflict.judge.case import ConflictCase
from conflict.judge.result_differences import result_differences
from conflict.typed.playing import play
from conflict.typed.rules import Rules

RECORDINGS = Path(__file__).parents[2] / "recordings" / "conflict"
CORPUS = Path(__file__).parents[4] / "shared" / "conformance" / "conflict"
# Every function and the formats, what is special about each; all others are in the slow test.
CASES = (
    "old/probe_type6",
    "max/upd_upd_a_first_type7",
    "max/rewound_type7",
    "max_delete_win/probe_type2",
    "max_del_win_ins/delete_delete_insert_type7",
    "max_ins/probe_type3",
    "epoch/ex_lower_case_name_type7",
    "epoch/extra_gci_bits_0_type7",
    "epoch/symmetric_type7",
    "epoch/concurrent_5021_type8",
    "epoch_trans/dependent_chain_type8",
    "epoch_trans/read_tracking_type7",
    "epoch2/role_swapped_type7",
    "epoch2/delete_delete_insert_type8",
    "epoch2_trans/spanning_plain_table_type8",
)
NOT_TYPED = {
    "epoch_trans/no_transaction_ids_type7": "no transaction ids are logged",
    "epoch2_trans/no_transaction_ids_type7": "no transaction ids are logged",
}


def differences(folder: Path) -> list[str]:
    """Return how what becomes of a recording's History differs from what was recorded."""
    history, case = History.from_recording(folder), ConflictCase.load(folder)
    run = make_run(case.configuration(), partial(hints_of_steps, case.steps))
    setups = run.setups.at_end
    rules = Rules(setups, {cluster.name: cluster.role for cluster in run.clusters}, {})
    results = resolve(play(history, rules).history, setups).clusters
    for name, expected in case.expected.items():
        for table in expected["exceptions"]:  # one that no function writes to is no part of a setup
            results[name].exceptions.setdefault(f"{case.databases[name]}.{table}", [])
    assert History.from_json_lines(history.to_json_lines()) == history
    return list(result_differences(case.recorded, case.databases, results, setups))


@pytest.mark.parametrize("name", CASES)
def test_a_recording_ends_as_it_was_recorded(name: str) -> None:
    """Rows, exceptions, counters and stops are those of the real clusters."""
    assert differences(RECORDINGS / name) == []


@pytest.mark.slow
def test_all_recordings_end_as_they_were_recorded() -> None:
    """So it is for the whole corpus, deterministic or not; two recordings cannot be typed."""
    found, refused = dict[str, list[str]](), dict[str, str]()
    for folder in sorted(path.parent for path in CORPUS.rglob("scenario.json")):
        name = folder.relative_to(CORPUS).as_posix()
        try:
            if lines := differences(folder):
                found[name] = lines
        except ConfigurationError as error:
            refused[name] = str(error)
    assert found == {}
    assert refused.keys() == NOT_TYPED.keys()
    assert all(why in refused[name] for name, why in NOT_TYPED.items())


def test_what_cannot_be_typed_is_refused() -> None:
    """The message says what."""
    with pytest.raises(ConfigurationError, match=r"on A cannot be typed: no transaction ids are logged"):
        History.from_recording(RECORDINGS / "epoch_trans/no_transaction_ids_type7")
    with pytest.raises(ConfigurationError, match=r"holds no scenario\.json"):
        History.from_recording(RECORDINGS)
