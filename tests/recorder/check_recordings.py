"""
Scenarios of bundled recordings, recorded anew: the same outcome, with which our engine agrees.

`make test-ndb` runs this; the name keeps it out of other test runs.
"""

import shutil
from pathlib import Path

import pytest

from tests.corpora import RECORDINGS
from tests.recorder.agreement import differences, disagreement
from tests.recorder.clusters import Pool
from tests.recorder.conftest import OUT
from tests.recorder.recording import Scenario, record

SCENARIOS = (
    *("conflict/epoch/upd_upd_b_first_type8", "conflict/epoch/rewound_type7", "conflict/epoch/unique_key_type7"),
    *("conflict/epoch_trans/dependent_chain_type8", "conflict/epoch2/delete_delete_insert_type8"),
    *("conflict/epoch2_trans/delete_delete_type8", "conflict/epoch2/role_swapped_type7", "conflict/epoch2/probe_type0"),
    *("conflict/max/upd_upd_a_first_type7", "conflict/max/probe_type8", "conflict/max_delete_win/probe_type2"),
    *("conflict/max_ins/before_refresh_type7", "conflict/max_del_win_ins/probe_type4", "conflict/old/probe_type6"),
    *(
        "conflict/replication_table/ambiguous",
        "conflict/parse/spec_07",
        "conflict/epoch_trans/no_transaction_ids_type7",
    ),
)


OWN = Path(__file__).parent / "scenarios"


@pytest.mark.parametrize("name", sorted(path.name for path in OWN.iterdir()))
def test_a_scenario_of_ones_own_is_recorded(pool: Pool, name: str) -> None:
    """A pair, two SQL nodes a cluster whose channels move, and a ring: as our engine says."""
    again(pool, OWN / name, OUT / "own" / name)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_comes_out_again(pool: Pool, name: str) -> None:
    """The steps of a recording give its rows, exceptions, counters and stops again, and what our engine says."""
    target = OUT / "again" / name
    again(pool, RECORDINGS / name, target)
    assert differences(RECORDINGS / name, target) == []


def again(pool: Pool, folder: Path, target: Path) -> None:
    """Record a scenario, and compare our engine with the recording."""
    scenario = Scenario.load(folder)
    shutil.rmtree(target, ignore_errors=True)
    record(scenario, pool.clusters(scenario.topology, scenario.epoch_ms), target)
    assert disagreement(target) == ""
