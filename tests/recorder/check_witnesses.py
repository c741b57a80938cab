"""
The schedules of the search, recorded: each is to end on real clusters as the search says.

`make test-ndb` runs this; the name keeps it out of other test runs. `ZOO` names a folder that `ndb-conflict zoo --out`
wrote, with the `--recordings` in its folder `recordings`; without it, some schedules are searched here.
What came of each is kept in build/ndb/cells.json, and, of the zoo, in build/ndb/recorded.json, which the zoo reads.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from conflict.cli import app as cli
from tests.recorder.agreement import differences, disagreement
from tests.recorder.clusters import Pool
from tests.recorder.conftest import OUT
from tests.recorder.recording import Scenario, record
from tests.recorder.schedule import EpochsFellApartError
from tests.recorder.sql_node import NotReachedError

FUNCTIONS = (
    *("NDB$OLD(x)", "NDB$MAX(x)", "NDB$MAX_DELETE_WIN(x)", "NDB$MAX_INS(x)", "NDB$MAX_DEL_WIN_INS(x)"),
    *("NDB$EPOCH()", "NDB$EPOCH_TRANS()", "NDB$EPOCH2()", "NDB$EPOCH2_TRANS()"),
)
TYPES = (2, 3, 6, 7, 8, 9)


def searched(folder: Path) -> Path:
    """Search every function under every format, and return the folder of what was found."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for function in FUNCTIONS:
        for binlog_type in TYPES:
            options = ["--function", function, "--binlog-type", str(binlog_type), "--policy", "needs"]
            target = folder / f"{function.removeprefix('NDB$').partition('(')[0].lower()}_type{binlog_type}"
            done = CliRunner().invoke(cli.app, ["diverge", *options, "--recording", str(target)])
            assert done.exit_code in (0, 1, 2), done.output  # 2: the server does not make such a table
    return folder


def cells(folder: Path) -> Iterator[Path]:
    """Yield the folder of each schedule."""
    yield from sorted(file.parent for file in folder.rglob("scenario.json"))


def outcome(pool: Pool, folder: Path, target: Path) -> dict[str, Any]:
    """Record a schedule; return whether it was recorded, and whether it agrees with the search."""
    scenario = Scenario.load(folder)
    shutil.rmtree(target, ignore_errors=True)
    try:
        record(scenario, pool.clusters(scenario.topology, scenario.epoch_ms), target)
    except (EpochsFellApartError, NotReachedError) as error:
        return {"recorded": False, "agreed": False, "why": [str(error)]}
    why = [line for line in [disagreement(target), *differences(folder, target)] if line]
    return {"recorded": True, "agreed": not why, "why": why}


def of_zoo(zoo: list[dict[str, Any]], cells: list[dict[str, Any]], server: str) -> Iterator[dict[str, Any]]:
    """Yield the cells of a zoo that were recorded, each with the steps that were carried out."""
    steps = {f"{each['pair']}/{each['anomaly']}": each["steps"] for each in zoo if each.get("steps")}
    for cell in cells:
        if cell["recorded"]:
            pair, _, anomaly = cell["case"].partition("/")
            known = {"pair": pair, "anomaly": anomaly, "steps": steps[cell["case"]]}
            yield {**known, "server": server, "agreed": cell["agreed"]}


def test_schedules_are_recorded(pool: Pool) -> None:
    """Every schedule ends on real clusters as the search says, and our engine agrees with its recording."""
    given = os.environ.get("ZOO")
    folder, found = Path(given, "recordings") if given else searched(OUT / "searched"), list[dict[str, Any]]()
    file = OUT / "cells.json"
    for each in cells(folder):
        case = each.relative_to(folder)
        scenario = Scenario.load(each).document
        about = {"case": case.as_posix(), "fn": scenario["fn"], "binlog_type": scenario["binlog_type"]}
        found.append({**about, "goal": each.name, **outcome(pool, each, OUT / "witnesses" / case)})
        document = {"server": pool.programs.version(), "cells": found}
        file.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    if given:
        zoo = json.loads(Path(given, "zoo.json").read_text("utf-8"))["zoo"]
        recorded = {"cells": list(of_zoo(zoo, found, pool.programs.version()))}
        (OUT / "recorded.json").write_text(json.dumps(recorded, indent=1) + "\n", "utf-8")
    assert found
    assert [each for each in found if not each["agreed"]] == []
