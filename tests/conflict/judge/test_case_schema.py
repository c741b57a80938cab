"""
The schema of cases holds for every recording, and refuses what is none.
"""

import copy
import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.corpora import RECORDINGS, SHARED

SCHEMA = json.loads(resources.files("conflict.judge").joinpath("case.schema.json").read_text("utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
CORPUS = "conformance"
TESTS = Path(__file__).parents[2]


def case_of(folder: Path) -> dict[str, Any]:
    names = ("scenario", "expected")
    return {name: json.loads((folder / f"{name}.json").read_text("utf-8")) for name in names}


def folders(top: Path) -> list[Path]:
    return sorted(file.parent for file in top.rglob("scenario.json") if (file.parent / "expected.json").exists())


def complaints(folder: Path) -> list[str]:
    return [f"{folder}: {error.json_path}: {error.message[:200]}" for error in VALIDATOR.iter_errors(case_of(folder))]


def test_it_is_a_schema() -> None:
    """The schema itself is valid, and each of its parts is used."""
    Draft202012Validator.check_schema(SCHEMA)
    text = json.dumps(SCHEMA)
    assert [name for name in SCHEMA["$defs"] if f"#/$defs/{name}" not in text] == []


def test_it_holds_for_the_recordings() -> None:
    """Every bundled recording is a case by the schema."""
    found = folders(RECORDINGS)
    assert len(found) > 100
    assert [line for folder in found for line in complaints(folder)] == []


def test_it_holds_for_scenarios_to_record() -> None:
    """A scenario that was written, and not yet recorded, lacks only what a recording adds."""
    part = VALIDATOR.evolve(schema={**SCHEMA["$defs"]["scenario"], "$defs": SCHEMA["$defs"]})
    files = sorted((TESTS / "recorder/scenarios").rglob("scenario.json"))
    assert len(files) == 3
    for file in files:
        part.validate(json.loads(file.read_text("utf-8")))


@pytest.mark.slow
@pytest.mark.corpus(CORPUS)
def test_it_holds_for_the_corpus() -> None:
    """And so is every one of the corpus."""
    found = folders(SHARED / CORPUS)
    assert len(found) > 600
    assert [line for folder in found for line in complaints(folder)] == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("scenario", "steps", 0, "on"), 1),
        (("scenario", "steps", 0), {"action": "sing"}),
        (("scenario", "steps", 0), {"sleep_ms": 1, "on": "A"}),
        (("scenario", "roles", "A"), "KING"),
        (("scenario", "binlog_files", "A"), []),
        (("scenario", "surprise"), 1),
        (("expected", "A", "applier", "errno"), "1296"),
        (("expected", "A", "status_difference", "Ndb_conflict_fn_max"), None),
    ],
)
def test_it_refuses_what_is_none(path: tuple[str | int, ...], value: object) -> None:
    """A case with one wrong value is none."""
    case = copy.deepcopy(case_of(RECORDINGS / "conflict/max/upd_upd_a_first_type7"))
    assert VALIDATOR.is_valid(case)
    inner: Any = case
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    assert not VALIDATOR.is_valid(case)
