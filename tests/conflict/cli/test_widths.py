"""What commands print fits the terminal, and says the same on each."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conflict.cli.app import app
from conflict.cli.commands import warm_up
from conflict.cli.common import console
from conflict.cli.refusals import ExitCode, messages
from tests.conflict.cli.cheap_calls import PRINTING, make_files

WIDTHS = (40, 80, 120)
# Data as it is, on lines that other programs read; and the help, which typer makes for at least 50 columns.
NOT_FOR_PEOPLE = {name for name in PRINTING if name.startswith(("decode", "help"))}
# What is pasted stands whole on its line, and so does what says where a file is.
WHOLE = re.compile(r" *(ndb-conflict |Python: |CHANGE REPLICATION |At work |The report is in |Wrote |The kernels are )")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what the calls read."""
    made = tmp_path_factory.mktemp("widths")
    make_files(made)
    return made


@pytest.fixture
def printed(folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> dict[int, str]:
    """Return what a call prints, by width of the terminal."""
    monkeypatch.setattr(warm_up, "_commands", lambda folder: [])  # it runs the others
    monkeypatch.setenv("NO_COLOR", "1")
    found = {}
    for width in WIDTHS:
        place = folder / f"{request.param}-{width}".replace(" ", "-")
        place.mkdir()
        for each in folder.iterdir():
            if each.name in ("result", "diverged.json", "model.toml", "sweep.toml", "watched.toml", "recordings"):
                (place / each.name).symlink_to(each)
        monkeypatch.chdir(place)
        for each in (console, messages):
            monkeypatch.setattr(each, "_width", width)
        done = CliRunner().invoke(app, PRINTING[request.param])
        assert done.exit_code < ExitCode.REFUSED or done.exit_code == ExitCode.WARNED, done.output
        found[width] = done.output
    return found


@pytest.mark.parametrize("printed", sorted(PRINTING.keys() - NOT_FOR_PEOPLE), indirect=True)
def test_what_is_printed_fits(printed: dict[int, str]) -> None:
    """No line is wider than the terminal but what is pasted; no number is lost on a narrow one, and no colour."""
    for width, output in printed.items():
        wide = [line for line in output.splitlines() if len(line.rstrip()) > width and not WHOLE.match(line)]
        assert wide == []
        assert "\x1b" not in output
        assert "Traceback" not in output
    numbers = {width: set(re.findall(r"\d[\d,.]*", output)) for width, output in printed.items()}
    timed = re.compile(r"At work|seconds|transactions/s")
    if not any(timed.search(output) for output in printed.values()):
        assert numbers[120] - numbers[40] == set()


@pytest.mark.parametrize("name", ["decode", "decode as JSON", "decode as CSV"])
def test_data_have_no_width(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log as text, JSON lines or CSV is the same on each terminal."""
    outputs = set()
    for width in WIDTHS:
        for each in (console, messages):
            monkeypatch.setattr(each, "_width", width)
        outputs.add(CliRunner().invoke(app, PRINTING[name]).stdout)
    assert len(outputs) == 1
    assert max(map(len, outputs.pop().splitlines())) > WIDTHS[1]
