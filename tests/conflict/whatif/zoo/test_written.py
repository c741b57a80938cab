"""What is written of a zoo: the page, the pictures, the tests; docs/zoo.md."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from random import Random
from xml.etree import ElementTree as ET

import pytest

import conflict
from conflict.errors import ConfigurationError
from conflict.whatif.diverging.scope import Scope
from conflict.whatif.diverging.words import schedule_of, step_text
from conflict.whatif.zoo.overview import overview_of
from conflict.whatif.zoo.page import page_of
from conflict.whatif.zoo.pairs import ANOMALIES
from conflict.whatif.zoo.zoo import Zoo
from tests.conflict.cli.commands import invoke
from tests.conflict.whatif.diverging.schedules import walk
from tools.zoo_page import PAGE, PICTURES, part

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Zoo, Path]:
    """A small zoo, and where it was written."""
    out = tmp_path_factory.mktemp("zoo") / "out"
    asked = {"function": ["NDB$MAX(x)", "NDB$EPOCH2()"], "formats": "6,7", "values": "version", "columns": 1}
    return conflict.zoo(**asked, workers=1, out=out), out  # type: ignore[arg-type]


def test_steps_as_text() -> None:
    """Every schedule is read as it was written."""
    chance = Random(3)
    for number in range(20):
        scope = Scope("NDB$EPOCH()", 7, 4, rows=2, columns=2, outages=number % 2)
        steps = tuple(walk(scope, chance, load=number % 3))
        assert schedule_of([step_text(step, scope) for step in steps], scope) == steps


def texts_of(picture: str) -> list[str]:
    """Return the texts of a picture."""
    return [each.text or "" for each in ET.fromstring(picture).iter(f"{SVG}text")]


def test_the_overview_of_a_zoo(folder: tuple[Zoo, Path]) -> None:
    """Of type 7, a line for each function, with what the cells say."""
    _, out = folder
    texts = texts_of((out / "pictures" / "overview.svg").read_text("utf-8"))
    at = texts.index("NDB$MAX(x)")
    assert texts[at : at + 6] == ["NDB$MAX(x)", "4 steps", "3 steps", "none found", "4 steps", "4 steps"]
    at = texts.index("NDB$EPOCH2()")
    assert texts[at : at + 6] == ["NDB$EPOCH2()", "none found", "3 steps", "none found", "5 steps", "6 steps"]


def test_the_overview_of_the_page() -> None:
    """Each function of the picture has the least of what the page shows of it under type 7."""
    texts = texts_of((PICTURES / "overview.svg").read_text("utf-8"))
    least: dict[tuple[str, str], str] = {}
    for (row, binlog_type, anomaly), cell in cells_of(part(PAGE.read_text("utf-8"), "zoo")).items():
        if binlog_type == 7:
            steps = re.match(r"\d+", cell)
            shown = f"{steps[0]} steps" if steps else "none found"
            least[row.split(",")[0], anomaly] = min(shown, least.get((row.split(",")[0], anomaly), shown))
    functions = list(dict.fromkeys(function for function, _ in least))
    assert len(functions) == 10
    for function in functions:
        at = texts.index(function)
        assert texts[at + 1 : at + 6] == [shown for (name, _), shown in least.items() if name == function]


@pytest.mark.parametrize(
    "text", ["C applies", "A updates row 2", "A updates y of row 1", "A drinks", "A upserts row 1"]
)
def test_no_steps(text: str) -> None:
    """What is no step, or of no row or column of the scope, is refused."""
    with pytest.raises(ConfigurationError, match=re.escape(repr(text))):
        schedule_of([text], Scope())


def test_the_page_names_its_schedules_and_pictures(folder: tuple[Zoo, Path]) -> None:
    """Each cell and each schedule stand there, each picture exists, with an arrow for each epoch that was applied."""
    zoo, out = folder
    page = (out / "zoo.md").read_text("utf-8")
    assert page == f"# The zoo\n\n{page_of(zoo, 'pictures')}"
    schedules = dict(re.findall(r"^\| (\w+) \| (the clusters hold .*?) \| \[", page, re.MULTILINE))
    shown = cells_of(page)
    for cell in zoo:
        found = re.fullmatch(r"(\d+)(\w+)✓|none", shown[cell.row, cell.binlog_type, cell.anomaly])
        assert found is not None
        assert found[1] == (None if cell.length is None else str(cell.length))
        assert schedules.get(found[2], "").split("; ") == list(cell.steps or [""])
    for picture in re.findall(r"\]\((pictures/.+?\.svg)\)", page):
        shapes = ET.fromstring((out / picture).read_text("utf-8"))
        assert len([each for each in shapes.iter(f"{SVG}line") if each.get("marker-end")]) >= 1


def cells_of(page: str) -> dict[tuple[str, int, str], str]:
    """Return what a page shows of each cell, by row, binlog type and anomaly."""
    anomalies = {words: goal.value for goal, (words, _) in ANOMALIES.items()}
    heading = re.search(r"^\| function \| types \| (.*) \|$", page, re.MULTILINE)
    assert heading is not None
    columns = [anomalies[words] for words in heading[1].split(" | ")]
    found: dict[tuple[str, int, str], str] = {}
    for names, types, line in re.findall(r"^\| (\S+(?:, [\w, ]+)?) \| ([\d,]+) \| (.*) \|$", page, re.MULTILINE):
        function, *values = names.replace("`", "").split(", ")
        for row in [f"{function}, {value}" for value in values] or [function]:
            for number in types.split(","):
                for anomaly, cell in zip(columns, line.split(" | "), strict=True):
                    assert found.setdefault((row, int(number), anomaly), cell) is cell
    return found


def test_tests_of_cells_are_green(folder: tuple[Zoo, Path]) -> None:
    """One for each cell that was found; they know nothing of the search."""
    zoo, out = folder
    files = sorted((out / "tests").iterdir())
    assert len(files) == sum(cell.schedule is not None for cell in zoo)
    assert "whatif" not in files[0].read_text("utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(out),
        str(out),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert f"{len(files)} passed" in done.stdout


def test_a_wrong_claim_is_red(folder: tuple[Zoo, Path], tmp_path: Path) -> None:
    """A test of a cell under another function fails."""
    _, out = folder
    text = (out / "tests" / "test_max_x_version_type7_difference.py").read_text("utf-8")
    (tmp_path / "test_other.py").write_text(text.replace("NDB$MAX(x)", "NDB$EPOCH2()"), "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1


def test_the_command(tmp_path: Path) -> None:
    """Its table, its files, and folders that it does not take."""
    asked = ("--function", "none", "--formats", 7, "--transactions", 2, "--columns", 1, "--workers", 1)
    out, cases = tmp_path / "zoo", tmp_path / "cases"
    code, output = invoke("zoo", *asked, "--out", out, "--recordings", cases, "--json", tmp_path / "zoo.json")
    assert code == 0, output
    assert "none 4 ✓ 3 ✓ - - 4 ✓" in output
    assert sorted(path.name for path in cases.iterdir()) == ["none_type7"]
    assert sorted(path.name for path in (cases / "none_type7").iterdir()) == ["counters", "difference", "lost"]
    code, output = invoke("conformance", cases, "--engine", "reference")
    assert code == 0, output
    assert "exists already; give a new folder" in invoke("zoo", *asked, "--recordings", cases)[1]
    assert "is no folder of a zoo" in invoke("zoo", *asked, "--out", cases)[1]
    assert invoke("zoo", *asked, "--out", out)[0] == 0


@pytest.mark.slow
def test_the_page_is_the_zoo() -> None:
    """Searched anew, it is the same."""
    zoo = conflict.zoo(workers=1)
    assert page_of(zoo, "pictures/zoo") == part(PAGE.read_text("utf-8"), "zoo")
    assert overview_of(zoo) == (PICTURES / "overview.svg").read_text("utf-8")
