"""The window of recordings: beside what the scalar reader sees, beside their steps, and as the command shows it."""

import json
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pytest

import conflict
from conflict.history.epochs import BinlogEpoch, EpochReader
from conflict.history.reading.epoch_logs import read_epochs
from conflict.operating.window.channels import NOT_KNOWN, Channel
from conflict.operating.window.window import Window
from ndb_formats.schema.tables import Schema
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO, RECORDINGS, SHARED

LIVE = RECORDINGS / "lives/live_2_epoch_type8"
STOPPED = sorted(
    each.parent
    for each in (RECORDINGS / "conflict").glob("*/*/scenario.json")
    if '"action": "stop"' in each.read_text("utf-8") and each.parent.name.startswith(("random", "hot"))
)
DELAYED = SHARED / "conformance/operations2/delayed"
_EPOCH = 100_000  # microseconds
SIDES = {"A": "server1", "B": "server2"}


def logs_of(case: Path) -> list[Path]:
    """Return the binlogs of a recording."""
    return sorted(case.glob("*.binlog.*"))


def between(window: Window, source: str, applier: str) -> Channel:
    """Return the channel between two clusters."""
    return next(each for each in window.channels if (each.source, each.applier) == (source, applier))


def scalar(file: Path, server_id: int) -> dict[int, BinlogEpoch]:
    """Return the epochs of a log, read one by one."""
    return {each.number: each for each in read_epochs([file], EpochReader(server_id, Schema()))}


def test_every_epoch_of_a_live_recording():
    """Delay and window of each epoch, from the epochs that the scalar reader sees."""
    window = conflict.window(logs_of(LIVE))
    read = {
        name: scalar(LIVE / f"{side}.binlog.000001", number) for number, (side, name) in enumerate(SIDES.items(), 1)
    }
    shown = {  # by applier: for each foreign epoch, the first own one that shows it
        name: {foreign.epoch: own for own in reversed(epochs.values()) for foreign in own.applied}
        for name, epochs in read.items()
    }
    smallest = {
        name: min(own.committed - read[other][foreign].committed for foreign, own in shown[name].items())
        for name, other in (("server1", "server2"), ("server2", "server1"))
    }
    clocks = window.clocks[0]
    assert (clocks.least, clocks.most) == (-smallest["server1"], smallest["server2"])
    ahead = (smallest["server2"] - smallest["server1"]) // 2
    for source, applier, sign in (("server1", "server2", 1), ("server2", "server1", -1)):
        channel, mine = between(window, source, applier), read[source]
        assert channel.number.tolist() == list(mine)
        for number, delay, came_back in zip(mine, channel.delay.tolist(), channel.window.tolist(), strict=True):
            there = shown[applier].get(number)
            back = None if there is None else shown[source].get(there.number)
            begun = mine[number].committed
            assert delay == (NOT_KNOWN if there is None else there.committed - begun - sign * ahead)
            assert came_back == (NOT_KNOWN if back is None else back.committed - begun)


@pytest.mark.parametrize("case", STOPPED, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_what_waits_while_an_applier_is_stopped(case: Path):
    """
    Each epoch with a transaction of the other side, while an applier was stopped, waits until the last of them.

    An epoch is logged up to 100 ms after a transaction in it committed, when the applier may have started again.
    """
    window = conflict.window(logs_of(case))
    stopped: dict[str, list[int] | None] = {"A": None, "B": None}
    checked = 0
    for step in json.loads((case / "scenario.json").read_text("utf-8"))["steps"]:
        if step.get("action") == "stop":
            stopped[step["applier"]] = []
        elif step.get("action") == "start":
            made, stopped[step["applier"]] = stopped[step["applier"]], None
            source, applier = (SIDES[each] for each in ("B" if step["applier"] == "A" else "A", step["applier"]))
            if not made or (source, applier) in window.silent:
                continue
            channel = between(window, source, applier)
            held = np.isin(channel.number, np.array(made, np.uint64)) & channel.waits
            if held.any():
                checked += 1
                gone = channel.gone[held]
                within = _EPOCH + (channel.clocks.bound or 0)
                assert (gone[gone != NOT_KNOWN] + within >= channel.committed[held].max()).all()
                assert channel.backlog[1].max() >= held.sum() - 1
        elif "sql" in step and not step.get("rolled_back"):
            other = stopped["B" if step["on"] == "A" else "A"]
            if other is not None and "epoch" in step:
                other.append(step["epoch"])
    assert checked or window.silent


@pytest.mark.corpus("conformance/operations2/delayed")
@pytest.mark.parametrize("case", sorted(DELAYED.glob("*")), ids=lambda case: case.name)
def test_an_applier_that_waits_three_seconds(case: Path):
    """The recording's A applies three seconds late: with what clocks leave open, half of B's epochs took that long."""
    window = conflict.window(logs_of(case))
    (clocks,) = window.clocks
    assert clocks.bound is not None
    slow, fast = between(window, "server2", "server1"), between(window, "server1", "server2")
    medians = [float(np.median(each.delay[each.delay != NOT_KNOWN])) for each in (slow, fast)]
    assert medians[0] + clocks.bound >= 3_000_000
    assert medians[1] - clocks.bound <= 1_000_000
    known = slow.window[slow.window != NOT_KNOWN]
    assert np.median(known) >= 3_000_000  # by one clock, so that nothing is open


def test_the_demo(tmp_path: Path):
    """With a result: its conflicts, and the row that differs, since B's only update of it."""
    result = conflict.resolve(DEMO / "run.toml", out=tmp_path / "result", engine="local")
    window = conflict.window(result, by="epoch")
    document = window.document()
    assert {each["applier"]: each["conflicts"] for each in document["channels"]} == {"A": 25, "B": 0}  # recorded
    assert sum(row["conflicts"] for row in document["times"]) == 25
    first = document["beginning"]["first"]
    assert (first["table"], first["key"], first["certain"]) == ("cft.plain", "id=3", True)
    story = conflict.explain(result, table="cft.plain", key="id=3")
    before = [each for each in story.events if each.time is not None and each.time.isoformat() < first["time"]]
    last = {each.cluster: each.row for each in before}
    assert last["A"] == last["B"]  # the same on both before
    assert "The clusters began to diverge" in repr(window)
    assert "<table" in window._repr_html_()


def test_a_run_file_knows_no_conflicts():
    """Times alone; what a result would add is said."""
    document = conflict.window(DEMO / "run.toml").document()
    assert [each["conflicts"] for each in document["channels"]] == [None, None]
    assert document["beginning"] is None
    assert {name: each["epochs"] for name, each in document["clusters"].items()} == {"A": 16, "B": 16}


def test_the_command(tmp_path: Path):
    """Its document, picture and report; exit code 0."""
    code, said = invoke("window", DEMO / "run.toml", "--json", tmp_path / "w.json", "--plot", tmp_path / "w.svg")
    assert (code, "B lags: half of the epochs of A took" in said) == (0, True)
    assert json.loads((tmp_path / "w.json").read_text())["window_by"] == "minute"
    assert "<svg" in (tmp_path / "w.svg").read_text()
    assert (
        invoke("report", tmp_path / "w.json", "--out", tmp_path / "page.html", "--figures", tmp_path / "figures")[0]
        == 0
    )
    data = pacsv.read_csv(tmp_path / "figures/window-window.csv")
    assert data.column_names == ["from", "B → A", "A → B"]
    code, said = invoke("window", DEMO / "run.toml", "--by", "day")
    assert code == 2


def test_logs_that_show_nothing_of_each_other(tmp_path: Path):
    """Nothing tells how long epochs took: said, and exit code 4."""
    run = conflict.History(A=["insert 1 v=0"], B=["insert 2 v=0"]).to_binlogs(tmp_path / "typed")
    code, said = invoke("window", run)
    assert (code, "No log shows an epoch of another cluster as applied" in said) == (4, True)
