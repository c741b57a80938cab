"""
The zoo as files: its document, its page, and of each cell the picture and a test; its schedules as recordings.

    zoo.json                 the cells
    zoo.md                   the page
    pictures/overview.svg    all cells of a format
    pictures/<cell>.svg      the schedule
    tests/test_<cell>.py     a test that builds it and asserts what the cell claims
    searches/                what was found so far, see `conflict.whatif.zoo.hunt`
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from conflict.errors import ConfigurationError
from conflict.history.grid.whole_files import new_folder, refuse_unwritable
from conflict.whatif.diverging.recording import write_recording
from conflict.whatif.zoo.hunt import SEARCHES
from conflict.whatif.zoo.overview import overview_of
from conflict.whatif.zoo.page import page_of
from conflict.whatif.zoo.pairs import ANOMALIES, is_of_servers
from conflict.whatif.zoo.picture import picture_of
from conflict.whatif.zoo.testing import test_of
from conflict.whatif.zoo.zoo import Zoo

DOCUMENT, PAGE, PICTURES, TESTS = "zoo.json", "zoo.md", "pictures", "tests"
OVERVIEW = "overview.svg"


def check_folders(out: Path | None, recordings: Path | None) -> None:
    """
    Make sure, before the work, that both folders can be used.

    Raises:
        ConfigurationError: The first one is there and is no zoo's, the second one is there, or one cannot be written.
    """
    if out is not None and out.exists() and not (out / SEARCHES).is_dir() and (not out.is_dir() or any(out.iterdir())):
        message = f"{out} exists already and is no folder of a zoo; give another one"
        raise ConfigurationError(message)
    if recordings is not None and recordings.exists():
        message = f"{recordings} exists already; give a new folder"
        raise ConfigurationError(message)
    for each in (out, recordings):
        if each is not None:
            refuse_unwritable(each)


def write_zoo(zoo: Zoo, folder: Path) -> None:
    """Write a zoo into a folder; what is of an earlier one is replaced."""
    for name in (PICTURES, TESTS):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
    for cell in zoo:
        if cell.schedule is not None:
            (folder / PICTURES / f"{cell.name}.svg").write_text(picture_of(cell), "utf-8")
        if cell.schedule is not None and is_of_servers(cell.scope):
            (folder / TESTS / f"test_{cell.name}.py").write_text(test_of(cell), "utf-8")
    (folder / PICTURES / OVERVIEW).write_text(overview_of(zoo), "utf-8")
    (folder / PAGE).write_text(f"# The zoo\n\n{page_of(zoo, PICTURES)}", "utf-8")
    (folder / DOCUMENT).write_text(json.dumps(zoo.document(), indent=1) + "\n", "utf-8")


def write_recordings(zoo: Zoo, folder: Path) -> None:
    """Write the schedule of each cell of a server's function as a recording, below a new folder: PAIR/ANOMALY."""
    beside = new_folder(folder, "part")
    try:
        for cell in zoo:
            if cell.schedule is not None and is_of_servers(cell.scope):
                target = beside / cell.pair / cell.anomaly.value
                target.mkdir(parents=True)
                what = f"{ANOMALIES[cell.anomaly][1]} The shortest schedule under {cell.row}, type {cell.binlog_type}."
                write_recording(cell.scope, cell.walk, what, target)
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
