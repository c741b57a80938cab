"""The files that docs/metrics.md offers to copy: their commands run, and they name metrics that there are."""

import configparser
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from conflict.cli.refusals import ExitCode
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO
from tests.layers import ROOT

FILES = ROOT / "docs" / "examples" / "night"


def unit(name: str) -> configparser.ConfigParser:
    """Return a unit of systemd."""
    found = configparser.ConfigParser(interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string((FILES / name).read_text("utf-8"))
    return found


def commands() -> Iterator[str]:
    """Yield the commands that cron and systemd run, in the folder of the run file."""
    (line,) = [line for line in (FILES / "crontab").read_text("utf-8").splitlines() if not line.startswith("#")]
    minute, hour, *rest, command = line.split(maxsplit=5)
    assert (int(minute), int(hour), rest) == (10, 3, ["*", "*", "*"])
    yield command.partition(" && ")[2]
    yield unit("ndb-conflict.service")["Service"]["ExecStart"]


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Run each command over the demo; return the names of the metrics that it wrote."""
    names = []
    for number, command in enumerate(commands()):
        folder = tmp_path_factory.mktemp(f"night{number}")
        shutil.copytree(DEMO, folder, dirs_exist_ok=True)
        program, *arguments = shlex.split(command)
        assert program == "ndb-conflict"
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            code, output = invoke(*arguments, "--engine", "reference")
        assert (code, output.strip()) == (ExitCode.CONDITION_HOLDS, "lost > 0: lost is 33.")
        written = (folder / "ndb_conflict.prom").read_text("utf-8")
        names.append(set(re.findall(r"^(ndb_conflict_\w+)", written, re.MULTILINE)))
    assert names[0] == names[1]
    return names[0]


def asked(expressions: list[str]) -> set[str]:
    """Return the metrics that expressions name."""
    return {name for each in expressions for name in re.findall(r"ndb_conflict_\w+", each)}


def test_alerts(metrics: set[str]) -> None:
    """Every rule is about metrics that are written."""
    (group,) = yaml.safe_load((FILES / "rules.yml").read_text("utf-8"))["groups"]
    named = asked([rule["expr"] for rule in group["rules"]])
    assert len(named) == len(group["rules"]) == 3
    assert named <= metrics


def test_panel(metrics: set[str]) -> None:
    """Every line of the panel is one of metrics that are written."""
    panel = json.loads((FILES / "panel.json").read_text("utf-8"))
    named = asked([target["expr"] for target in panel["targets"]])
    assert len(named) == len(panel["targets"]) == 3
    assert named <= metrics


def test_timer() -> None:
    """It starts the service of its name each night."""
    timer = unit("ndb-conflict.timer")
    assert timer["Timer"]["OnCalendar"] == "*-*-* 03:10:00"
    assert Path(FILES / "ndb-conflict.service").exists()
