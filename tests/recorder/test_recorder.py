"""
What the recorder does without a cluster: it finds programs, leaves no process, keeps epochs, and compares recordings.

With clusters it is tried by `make test-ndb`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import attrs
import pytest

from conflict.whatif.diverging.recording import write_recording
from conflict.whatif.diverging.retelling import retell
from conflict.whatif.diverging.scope import Goal, Scope
from conflict.whatif.diverging.search import search
from tests.corpora import RECORDINGS
from tests.recorder import schedule
from tests.recorder.__main__ import scenarios
from tests.recorder.agreement import differences
from tests.recorder.processes import free_ports
from tests.recorder.programs import MissingProgramError, Programs
from tests.recorder.recording import Scenario
from tests.recorder.schedule import EpochsFellApartError, planned, taken

BUILD = ("build/runtime_output_directory", "build/share/english/errmsg.sys", "src/share/charsets/Index.xml")
INSTALLED = ("bin", "share/english/errmsg.sys", "share/charsets/Index.xml")
MINUTE = 60


def made(folder: Path, place: str, *names: str) -> None:
    for name in names:
        path = folder / place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o755)


@pytest.mark.parametrize(("place", "messages", "charsets"), [BUILD, INSTALLED])
def test_programs_are_found(tmp_path: Path, place: str, messages: str, charsets: str) -> None:
    """A build's folder and an installed server's are both taken, and one without a program is refused by name."""
    made(tmp_path, place, "mysqld", "ndbmtd")
    with pytest.raises(MissingProgramError, match="has no program ndb_mgmd"):
        Programs.of(tmp_path)
    made(tmp_path, place, "ndb_mgmd")
    made(tmp_path, ".", messages, charsets)
    found = Programs.of(tmp_path)
    assert [each.name for each in (found.mysqld, found.ndbd, found.ndb_mgmd)] == ["mysqld", "ndbmtd", "ndb_mgmd"]
    folders = [tmp_path / messages, tmp_path / charsets]
    assert [f"{folders[0].parents[1]}", f"{folders[1].parent}"] == [each.split("=")[1] for each in found.files]


def test_ports_differ() -> None:
    """Each port is another one."""
    assert len(set(free_ports(20))) == 20


GROUP = """
import sys
from pathlib import Path
from tests.recorder.processes import Processes
with Processes() as processes:
    started = [processes.start(["sleep", "600"], Path(sys.argv[1])) for _ in range(2)]
    print(*(each.pid for each in started), flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("number", [None, signal.SIGKILL, signal.SIGTERM])
def test_no_process_is_left(tmp_path: Path, number: signal.Signals | None) -> None:
    """What was started ends with the recorder: in order, and if that is killed."""
    command = [sys.executable, "-c", GROUP, str(tmp_path / "log")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as recorder:
        assert recorder.stdin is not None
        assert recorder.stdout is not None
        started = [int(each) for each in recorder.stdout.readline().split()]
        assert all(map(alive, started))
        if number is None:
            recorder.stdin.close()
        else:
            recorder.send_signal(number)
        end = time.monotonic() + MINUTE
        while any(map(alive, started)) and time.monotonic() < end:
            time.sleep(0.01)
        assert not any(map(alive, started))


def alive(number: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{number}/stat").read_text("utf-8").rsplit(")", 1)[1].split()[0] != "Z"


@pytest.fixture(scope="module")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Return a schedule that was searched: B applies an epoch of A in the epoch of its own transactions."""
    scope = Scope("NDB$EPOCH()")
    found = search(scope, Goal.DIFFERENCE)
    assert found.steps is not None
    folder = tmp_path_factory.mktemp("witness")
    write_recording(scope, retell(scope, found.steps), "", folder)
    return Scenario.load(folder)


def test_a_schedule_is_planned(witness: Scenario) -> None:
    """An applier's start and stop are one step, which knows its own epoch and the last one that it takes."""
    steps = planned(witness.document, witness.folder)
    epoch = 1 << 32
    acting = [(each.name, each.epoch, each.last) for each in steps if each.epoch is not None]
    assert acting == [
        ("A", epoch, None),
        ("A", 3 * epoch, None),
        ("B", 2 * epoch, None),
        ("B", 2 * epoch, None),
        ("B", 2 * epoch, 3 * epoch),
        ("A", 4 * epoch, 2 * epoch),
    ]
    assert witness.topology == (("A", 1), ("B", 2))
    assert witness.links == {"A": "B", "B": "A"}


def test_what_falls_into_one_epoch_stands_together(witness: Scenario) -> None:
    """A step of the other cluster in between comes before."""
    document = dict(witness.document)
    steps = list(document["steps"])
    steps[4], steps[5] = steps[5], steps[4]  # B deletes, A deletes, B inserts
    found = planned({**document, "steps": steps}, witness.folder)
    assert [each.name for each in found if each.epoch is not None] == ["A", "A", "B", "B", "B", "A"]


@attrs.define
class _Node:
    """An SQL node on which every epoch is over at once."""

    cluster: str
    closed: int = 0

    def close_epoch(self) -> None:
        self.closed += 1

    def latest_epoch(self) -> int:
        self.closed += 1
        return self.closed


@attrs.define
class _Stage:
    """Clusters on which transactions fall into given epochs."""

    epochs: list[int]
    nodes: dict[str, _Node] = attrs.field(factory=lambda: {name: _Node(name) for name in "AB"})

    def node(self, name: str) -> _Node:
        return self.nodes[name]

    def carried_out(self, _: object, step: dict[str, Any]) -> dict[str, Any]:
        return {**step, "epoch": self.epochs.pop(0)}


@pytest.mark.parametrize(
    ("given", "real", "falls_apart"),
    [
        ([1, 1, 2], [7, 7, 9], False),
        ([1, 1, 2], [7, 8, 9], True),  # one epoch became two
        ([1, 2], [7, 7], True),  # two became one
    ],
)
def test_epochs_are_kept(
    monkeypatch: pytest.MonkeyPatch, given: list[int], real: list[int], *, falls_apart: bool
) -> None:
    """Transactions of one epoch are to fall into one, and those of two into two."""
    stage = _Stage(real)
    monkeypatch.setattr(schedule, "carried_out", stage.carried_out)
    steps = [{"on": "A", "sql": ["SELECT 1"], "epoch": epoch} for epoch in given]
    plan = planned({"steps": steps}, Path())
    if falls_apart:
        with pytest.raises(EpochsFellApartError):
            taken(stage, plan)  # type: ignore[arg-type]
    else:
        assert [step["epoch"] for step in taken(stage, plan)] == [7, 7, 9]  # type: ignore[arg-type]


def test_recordings_are_compared(tmp_path: Path) -> None:
    """A recording agrees with itself; other rows, counters and stops are told, epochs are not looked at."""
    folder = RECORDINGS / "conflict/epoch/upd_upd_b_first_type8"
    assert differences(folder, folder) == []
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    expected = json.loads((other / "expected.json").read_text("utf-8"))
    side = expected["A"]
    (table, rows), *_ = ((name, each["rows"]) for name, each in side["tables"].items() if each["rows"])
    (exceptions, lines), *_ = ((name, each["rows"]) for name, each in side["exceptions"].items() if each["rows"])
    lines[0][2] += 1
    rows.pop()
    side["status_difference"]["Ndb_conflict_fn_epoch"] += 1
    side["applier"]["errno"] = 1296
    (other / "expected.json").write_text(json.dumps(expected), "utf-8")
    stop, lacking, counter = differences(folder, other)
    assert stop == "A: the applier's error is 1296, and was 0"
    assert lacking.startswith(f"A: {table}: rows none in place of [")
    assert counter.startswith("A: Ndb_conflict_fn_epoch is ")
    assert exceptions not in f"{stop}{lacking}{counter}"


def test_a_folder_of_scenarios_is_kept_in_shape(tmp_path: Path) -> None:
    """Each scenario below a folder is recorded into a folder of its path."""
    found = scenarios([RECORDINGS / "conflict/old"], tmp_path)
    assert len(found) == 9
    assert {target.parent for _, target in found} == {tmp_path / "old"}
