"""Commands on a result of a History that alone has read the first binlogs: they know it, or say what is missing."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conflict.cli.refusals import ExitCode
from tests.conflict.changing_logs import FIRST, Columns
from tests.conflict.cli.commands import invoke
from tests.conflict.small_logs import UPDATE, WRITE, SmallLogs, Values

ALTERED = "ALTER TABLE judged ADD COLUMN w INT", {"judged": (*FIRST, "w INT")}
MISSING = "A.000001 and B.000001 are not given, and the History alone has them"


def write_logs(folder: Path, statement: tuple[str, dict[str, Columns]] | None) -> Path:
    """
    Write binlogs in two files, and return the run file.

    In the first files, row 3 is inserted; of row 1, B's x=20 loses against A's x=30; then a statement may come. In the
    second ones, B's x=40 loses against A's x=50, which B has not applied at the end. Of the table without a function,
    updates of row 8 cross in the first files.
    """
    logs = SmallLogs()
    logs.commit("A", (WRITE, "judged", (1, 10, 7)), (WRITE, "judged", (3, 1, 1)), (WRITE, "other", (8, 1, 1)))
    logs.take("B", (WRITE, "judged", (1, 10, 7)), (WRITE, "judged", (3, 1, 1)), (WRITE, "other", (8, 1, 1)))
    logs.take("A")
    logs.commit("A", (UPDATE, "judged", (1, 10, 7), (1, 30, 7)), (UPDATE, "other", (8, 1, 1), (8, 5, 1)))
    logs.commit("B", (UPDATE, "judged", (1, 10, 7), (1, 20, 8)), (UPDATE, "other", (8, 1, 1), (8, 6, 1)))
    logs.take("A", (UPDATE, "other", (8, 5, 1), (8, 6, 1)))
    logs.take("B")
    logs.take("B", (UPDATE, "judged", (1, 20, 8), (1, 30, 7)), (UPDATE, "other", (8, 6, 1), (8, 5, 1)))
    if statement is None:
        logs.settle()
    else:
        logs.define(*statement)
    logs.rotate()

    def judged(*values: int | None) -> Values:
        return values[: 4 if statement is ALTERED else 3]

    if statement is not None and statement[0].startswith("TRUNCATE"):
        logs.commit("A", (WRITE, "judged", judged(1, 50, 7, 5)))
        logs.commit("B", (WRITE, "judged", judged(1, 40, 9, 4)))
    else:
        logs.commit("A", (UPDATE, "judged", judged(1, 30, 7, None), judged(1, 50, 7, 5)))
        logs.commit("B", (UPDATE, "judged", judged(1, 30, 7, None), judged(1, 40, 9, 4)))
    logs.take("A")
    return logs.write(folder)


def purge(folder: Path) -> None:
    """Move the first files away."""
    (folder / "gone").mkdir()
    for name in "AB":
        (folder / f"{name}.000001").rename(folder / "gone" / f"{name}.000001")


def resolved_after_purge(folder: Path, statement: tuple[str, dict[str, Columns]] | None) -> Path:
    """Keep a History of all files, and resolve it without the first ones; the same result as with them."""
    run = write_logs(folder, statement)
    said("resolve", run, "--engine", "local", "--keep-history", folder / "history", "--out", folder / "whole")
    purge(folder)
    said("resolve", run, "--engine", "local", "--history", folder / "history", "--out", folder / "out")
    whole, out = (json.loads((folder / name / "run.json").read_text()) for name in ("whole", "out"))
    assert whole["inputs"]["history"] is None
    alone = {name: [str(folder / f"{name}.000001")] for name in "AB"}
    assert (out["inputs"]["history"]["folder"], out["inputs"]["history"]["files"]) == (str(folder / "history"), alone)
    named = ("configuration", "inputs")  # which name the files
    assert {**whole, **dict.fromkeys(named)} == {**out, **dict.fromkeys(named)}
    return folder / "out"


def said(*arguments: object, code: int = 0) -> str:
    """Run a command, and return what it says, without line breaks."""
    found, output = invoke(*arguments)
    assert found == code, output
    return " ".join(output.split())


@pytest.fixture(scope="module")
def altered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a result after a purge of files with an ALTER TABLE."""
    return resolved_after_purge(tmp_path_factory.mktemp("altered"), ALTERED)


@pytest.fixture(scope="module")
def truncated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a result after a purge of files with a TRUNCATE TABLE."""
    return resolved_after_purge(tmp_path_factory.mktemp("truncated"), ("TRUNCATE TABLE judged", {}))


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a result after a purge of files without a statement."""
    return resolved_after_purge(tmp_path_factory.mktemp("unchanged"), None)


@pytest.fixture
def without_history(altered: Path) -> Iterator[Path]:
    """Give a result whose History is gone, too."""
    history = altered.parent / "history"
    history.rename(altered.parent / "moved")
    yield altered
    (altered.parent / "moved").rename(history)


def events(result: Path, *arguments: object) -> list[dict[str, Any]]:
    """Explain, and return the events as documents."""
    file = result.parent / "story.json"
    said("explain", result, *arguments, "--json", file, "--force")
    found: list[dict[str, Any]] = json.loads(file.read_text())["events"]
    return found


def brief(event: dict[str, Any]) -> tuple[Any, ...]:
    """Return what an event is, and the row after it; ``...`` if that is not known."""
    row = list(event["row"].values()) if event["row"] else None
    return event["cluster"], event["kind"], event["verdict"], row if event["row_known"] else ...


def test_a_row(altered: Path) -> None:
    """What is before the files is told as far as the result has it; after that, columns have their names."""
    assert [brief(each) for each in events(altered, "--table", "judged", "--key", 1)] == [
        ("A", "judged", "REJECTED", ...),  # x=20, in the first files
        ("A", "defined", None, ...),
        ("B", "defined", None, ...),
        ("A", "committed", None, [1, 50, 7, 5]),
        ("B", "committed", None, [1, 40, 9, 4]),
        ("A", "judged", "REJECTED", [1, 50, 7, 5]),  # x=40
        ("B", "not applied", None, [1, 40, 9, 4]),
    ]
    text = said("explain", altered, "--table", "judged", "--key", 1)
    assert f"{MISSING}. Of what was before, stories have what the result says" in text
    assert "it brings x=20, which does not win over the row's 30" in text
    assert text.count("row on A stays: not known") == 1
    assert "no row" not in text


def test_a_row_after_truncate(truncated: Path) -> None:
    """A row that a purged file may have inserted after the statement is not known to be absent."""
    assert [brief(each) for each in events(truncated, "--table", "judged", "--key", 1)] == [
        ("A", "judged", "REJECTED", ...),
        ("A", "defined", None, ...),
        ("B", "defined", None, ...),
        ("A", "committed", None, [1, 50, 7]),
        ("B", "committed", None, [1, 40, 9]),
        ("A", "judged", "REJECTED", [1, 50, 7]),  # the row already exists
        ("B", "judged", "REJECTED", [1, 40, 9]),
    ]


def test_files_that_are_back(altered: Path) -> None:
    """The story is the whole one, as of the result that was made with all files."""
    folder = altered.parent
    for file in (folder / "gone").iterdir():
        shutil.copy(file, folder)
    try:
        whole = events(folder / "whole", "--table", "judged", "--key", 1)
        assert events(altered, "--table", "judged", "--key", 1) == whole
    finally:
        for name in "AB":
            (folder / f"{name}.000001").unlink()
    assert len(whole) == 12


def test_rows_that_differ(unchanged: Path) -> None:
    """Row 8 ends different by what is in the first files: the story has its ends, and says that it lacks the rest."""
    text = said("explain", unchanged, "--differences", "--table", "other")
    assert "On A nothing in its log wrote that; on B nothing in its log wrote that." in text
    assert MISSING in text


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("--table", "judged", "--key", 3), "nothing happened to the row k=3 of d.judged in these binlogs"),
        (("--transaction", 1), "no binlog has a transaction with the id 1"),
    ],
)
def test_what_only_the_history_has(asked: tuple[object, ...], words: str, altered: Path) -> None:
    """The refusal says which files are missing."""
    text = said("explain", altered, *asked, code=ExitCode.REFUSED)
    assert words in text
    assert f"; {MISSING}" in text


def test_an_exceptions_row(altered: Path) -> None:
    """The first one stands for B's x=20, which is in the first files."""
    text = said("explain", altered, "--exception", 1)
    assert "the update was rejected: it brings x=20" in text
    assert "the operation: B.000001" in text
    assert MISSING in text


def test_lost_changes(altered: Path) -> None:
    """Columns have their names, and images that only the History has are said to be missing."""
    out, figures = altered.parent / "lost.jsonl", altered.parent / "lost.json"
    text = said("lost", altered, "--table", "judged", "--out", out, "--json", figures, "--force")
    assert "What 1 of them set is not shown: B.000001 is not given, and the History alone has it." in text
    assert json.loads(figures.read_text())["without_images"] == 1
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {Path(row["file"]).name: row["after"] for row in rows} == {
        "B.000001": None,
        "B.000002": {"k": "1", "x": "40", "v": "9", "w": "4"},
    }


def test_a_repair_of_what_only_the_history_has(unchanged: Path) -> None:
    """Row 8 crossed in the first files: A has x=6, B has x=5. The rows are those of the History."""
    plan = unchanged.parent / "plan"
    text = said("repair", unchanged, "--rule", "d.other=A", "--rule", "*=review", "--out", plan, "--force")
    assert "1 row can be made equal" in text
    assert "Proved" in text
    (script,) = plan.glob("*.sql")
    assert "UPDATE `d`.`other` SET `x` = 6 WHERE `k` = 8 AND `x` <=> 5 AND `v` <=> 1 AND @" in script.read_text()
    assert (unchanged.parent / "history/history.json").exists()


def test_a_repair_that_replays_binlogs(altered: Path) -> None:
    """Definitions change: the reference engine would have to read files that are gone."""
    text = said("repair", altered, "--rule", "*=newest", code=ExitCode.REFUSED)
    assert "only the reference engine can replay the rows" in text
    assert "B.000001 are in the History in" in text


def test_a_repair_after_the_history_has_grown(unchanged: Path) -> None:
    """Its rows are not those of the result any more."""
    document = unchanged / "run.json"
    text = document.read_text()
    found = json.loads(text)
    found["inputs"]["history"]["last_epochs"]["A"] -= 1
    document.write_text(json.dumps(found))
    try:
        assert "has grown since the result in" in said("repair", unchanged, code=ExitCode.REFUSED)
    finally:
        document.write_text(text)


@pytest.mark.parametrize(
    "command", [("explain", "--table", "judged", "--key", 1), ("explain", "--differences"), ("lost",), ("repair",)]
)
def test_a_history_that_is_gone(command: tuple[object, ...], without_history: Path) -> None:
    """What statements did is not known, so nothing is told."""
    name, *options = command
    text = said(name, without_history, *options, code=ExitCode.REFUSED)
    assert "A.000001 and " in text
    assert "is missing: what statements in them did to tables is not known" in text
    assert "bring the History or these binlogs back, or resolve again" in text


def test_sizes_of_a_comparison(altered: Path) -> None:
    """They are not known, of which the files that are left are a part; the figures are of all rows."""
    figures = altered.parent / "pairs.json"
    run, history = altered.parent / "run.toml", altered.parent / "history"
    said("compare", run, "--history", history, "--engine", "local", "--json", figures, "--force")
    found = json.loads(figures.read_text())
    assert found["changes"] == 9
    assert {pair["least_bytes"] for pair in found["pairs"]} == {None}


def test_what_only_the_reference_engine_resolves(altered: Path, tmp_path: Path) -> None:
    """It would resolve the rest alone, so it is refused; and so is a History that is not there."""
    options = ("--engine", "local", "--stop-datetime", "2030-01-01", "--out", tmp_path / "out")
    run, history = altered.parent / "run.toml", altered.parent / "history"
    text = said("resolve", run, "--history", history, *options, code=ExitCode.REFUSED)
    assert "only the reference engine resolves this run, because the part of the logs is given by time" in text
    assert "give these files, too" in text
    text = said("resolve", run, "--history", tmp_path / "none", *options, code=ExitCode.REFUSED)
    assert "there is no History in" in text


def test_a_history_of_later_files(tmp_path: Path) -> None:
    """The result is of all that the History holds, and the last files are not given."""
    run = write_logs(tmp_path, None)
    said("resolve", run, "--engine", "local", "--keep-history", tmp_path / "history", "--out", tmp_path / "whole")
    for name in "AB":
        (tmp_path / f"{name}.000002").unlink()
    said("resolve", run, "--engine", "local", "--history", tmp_path / "history", "--out", tmp_path / "out")
    text = said("explain", tmp_path / "out", "--table", "judged", "--key", 1, code=ExitCode.REFUSED)
    assert "not all of them come before the binlogs that are; give the later ones" in text


def test_an_epoch_under_way_at_the_purge(tmp_path: Path) -> None:
    """B takes A's insert of the first files in its second one: B's log shows it; A's row is known when B's comes."""
    logs = SmallLogs()
    logs.commit("A", (WRITE, "judged", (1, 10, 7)))
    logs.commit("B", (WRITE, "judged", (2, 10, 7)))
    logs.rotate()
    logs.take("B", (WRITE, "judged", (1, 10, 7)))
    logs.commit("B", (UPDATE, "judged", (1, 10, 7), (1, 20, 7)))
    for change in ((WRITE, "judged", (2, 10, 7)), None, (UPDATE, "judged", (1, 10, 7), (1, 20, 7))):
        logs.take("A", *([] if change is None else [change]))
    run = logs.write(tmp_path)
    said("resolve", run, "--engine", "local", "--keep-history", tmp_path / "history", "--out", tmp_path / "whole")
    purge(tmp_path)
    said("resolve", run, "--engine", "local", "--history", tmp_path / "history", "--out", tmp_path / "out")
    assert [brief(each) for each in events(tmp_path / "out", "--table", "judged", "--key", 1)] == [
        ("B", "logged", None, [1, 10, 7]),
        ("B", "committed", None, [1, 20, 7]),
        ("A", "judged", "APPLIED", [1, 20, 7]),
    ]


def test_a_history_that_is_kept_after_a_purge(tmp_path: Path) -> None:
    """`--keep-history` continues it, and the result names it as `--history` does."""
    run = write_logs(tmp_path, ALTERED)
    options = ("--engine", "local", "--keep-history", tmp_path / "history")
    said("resolve", run, *options, "--out", tmp_path / "whole")
    purge(tmp_path)
    said("resolve", run, *options, "--out", tmp_path / "out")
    assert MISSING in said("explain", tmp_path / "out", "--table", "judged", "--key", 1)
