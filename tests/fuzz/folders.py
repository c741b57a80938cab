"""
Histories and results that something happened to: files cut, exchanged, removed or added, and other numbers in them.

An input is a recipe in JSON: the recording, and what is done to the folder that was made of it. The catalogue and the
digests may be mended at its end, so that readers come further than the first check.
"""

from __future__ import annotations

import atexit
import json
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from conflict import explain_differences
from conflict.config.option_values import By
from conflict.config.run_file import GivenSchedule, RunFile, load_run_file
from conflict.history.grid.folder import Folder
from conflict.history.tasks import in_process
from conflict.results.result import Result, read_result
from conflict.runs.ingest_job import ingest
from conflict.runs.pipeline import ResolveOptions, resolve, run_by
from tests.conflict.growing import Recording, ingested
from tests.corpora import DEMO, RECORDINGS
from tests.fuzz.binlog_mutator import changed_bytes, some_number
from tests.fuzz.mended import mend

__all__ = ["a_recipe", "read_changed_history", "read_changed_result"]

RECORDED = (
    "demo",
    "conflict/epoch_trans/hot_3020_type8",
    "conflict/max/unique_key_type7",
    "everyday/epoch2/ddl_add_column_type8",
)
_NAMES = ("history.json", "run.json", "counters.json")


# ---------------------------------------------------------------------------------------------------------
# Whole folders
# ---------------------------------------------------------------------------------------------------------


def _folder(name: str) -> Path:
    return DEMO if name == "demo" else RECORDINGS / name


@cache
def _recording(name: str) -> Recording:
    return Recording.load(_folder(name), _folder(name))


@cache
def _whole(kind: str, name: str) -> Path:
    """Return a History or a result of a recording, which stays until the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    recording = _recording(name)
    if kind == "history":
        ingested(recording, Folder(str(folder / kind)))
    else:
        file = _folder(name) / "run.toml"
        run = load_run_file(file) if file.exists() else RunFile(file, recording.configuration, GivenSchedule(), ())
        resolve(run, str(folder / kind), engine="local")
    return folder / kind


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# ---------------------------------------------------------------------------------------------------------
# Recipes
# ---------------------------------------------------------------------------------------------------------


def a_recipe(kind: str, chance: random.Random) -> bytes:
    """Return a recipe for a History or a result."""
    name = chance.choice(RECORDED)
    files = _files(_whole(kind, name))
    steps = [chance.choice(_STEPS)(_whole(kind, name), files, chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    return json.dumps({"of": name, "steps": steps, "mended": chance.random() < 0.8}).encode()


def _some_file(folder: Path, files: list[str], chance: random.Random) -> list[Any]:
    path = chance.choice(files)
    size = (folder / path).stat().st_size
    kind = chance.randrange(5)
    if kind == 0:
        return ["cut", path, chance.randrange(size)]
    if kind == 1:
        return ["bytes", path, chance.randrange(1 << 32)]
    if kind == 2:
        return ["remove", path]
    return [chance.choice(("replace", "swap")), path, _like(path, files, chance)]


def _like(path: str, files: list[str], chance: random.Random) -> str:
    """Return another file, mostly one with the same columns."""
    kin = [each for each in files if each.split("/")[0] == path.split("/", maxsplit=1)[0]]
    return chance.choice(kin if chance.random() < 0.8 else files)


def _some_rows(folder: Path, files: list[str], chance: random.Random) -> list[Any]:
    path = chance.choice([each for each in files if each.endswith(".parquet")])
    table = pq.read_table(folder / path, partitioning=None)
    kind = chance.randrange(10)
    column = chance.choice(table.column_names)
    if kind == 0:
        return ["drop", path, column]
    if kind == 1:
        return ["text", path, column]
    if kind == 2:
        return ["rows", path, [chance.randrange(len(table) + 1) for _ in range(2)]]
    return [
        "value",
        path,
        column,
        chance.randrange(max(len(table), 1)),
        some_number(chance) * chance.choice((1, 1, -1)),
    ]


def _some_entry(folder: Path, files: list[str], chance: random.Random) -> list[Any]:
    path = chance.choice([each for each in _NAMES if each in files])
    places = list(_places(json.loads((folder / path).read_text())))
    place = chance.choice(places)
    kind = chance.randrange(4)
    if kind == 0:
        return ["forget", path, place]
    value = some_number(chance) if kind < 3 else chance.choice([None, "x", -1, 0.5, [], {}, True, [1]])
    return ["entry", path, place, value]


def _places(document: object, place: tuple[str | int, ...] = ()) -> Iterator[list[str | int]]:
    """Yield where each value of a document stands."""
    if place:
        yield list(place)
    pairs = (
        document.items() if isinstance(document, dict) else enumerate(document if isinstance(document, list) else ())
    )
    for name, value in pairs:
        yield from _places(value, (*place, name))


_STEPS: tuple[Callable[[Path, list[str], random.Random], list[Any]], ...] = (
    *(_some_file, _some_rows, _some_rows),
    _some_entry,
)


# ---------------------------------------------------------------------------------------------------------
# What recipes do
# ---------------------------------------------------------------------------------------------------------


def _replace(folder: Path, path: str, other: str) -> None:
    shutil.copy(folder / other, folder / path)


def _swap(folder: Path, path: str, other: str) -> None:
    first, second = (folder / each for each in (path, other))
    content = first.read_bytes(), second.read_bytes()
    second.write_bytes(content[0])
    first.write_bytes(content[1])


def _cut(folder: Path, path: str, size: int) -> None:
    (folder / path).write_bytes((folder / path).read_bytes()[:size])


def _bytes(folder: Path, path: str, seed: int) -> None:
    (folder / path).write_bytes(changed_bytes((folder / path).read_bytes(), random.Random(seed)))


def _remove(folder: Path, path: str) -> None:
    (folder / path).unlink()


def _drop(folder: Path, path: str, column: str) -> None:
    _put(folder, path, _get(folder, path).drop_columns([column]))


def _text(folder: Path, path: str, column: str) -> None:
    table = _get(folder, path)
    place = table.column_names.index(column)
    _put(folder, path, table.set_column(place, column, pa.array(["x"] * len(table), pa.string())))


def _rows(folder: Path, path: str, places: list[int]) -> None:
    first, last = sorted(places)
    _put(folder, path, _get(folder, path).slice(first, last - first))


def _value(folder: Path, path: str, column: str, row: int, number: int) -> None:
    table = _get(folder, path)
    place, values = table.column_names.index(column), table[column].to_pylist()
    kind = table.schema.field(column).type
    if row < len(values):
        values[row] = _as_type(kind, values[row], number)
    _put(folder, path, table.set_column(place, column, pa.array(values, kind)))


def _as_type(kind: pa.DataType, value: object, number: int) -> object:
    """Return a value of a type that is made of a number; None for types that are made of others."""
    if pa.types.is_integer(kind):
        top = 1 << kind.bit_width
        low = 0 if pa.types.is_unsigned_integer(kind) else -(top >> 1)
        return (number - low) % top + low
    if pa.types.is_boolean(kind):
        return not value
    if isinstance(value, bytes):
        return changed_bytes(value, random.Random(number))
    if isinstance(value, str):
        return f"{value[: number % 7]}{number}"
    return None


def _get(folder: Path, path: str) -> pa.Table:
    return pq.read_table(folder / path, partitioning=None)


def _put(folder: Path, path: str, table: pa.Table) -> None:
    Folder(str(folder)).write_table(path, table)


def _entry(folder: Path, path: str, place: list[str | int], value: object) -> None:
    document = json.loads((folder / path).read_text())
    _at(document, place)[place[-1]] = value
    (folder / path).write_text(json.dumps(document))


def _forget(folder: Path, path: str, place: list[str | int]) -> None:
    document = json.loads((folder / path).read_text())
    del _at(document, place)[place[-1]]
    (folder / path).write_text(json.dumps(document))


def _at(document: Any, place: list[str | int]) -> Any:
    for name in place[:-1]:
        document = document[name]
    return document


_DONE: Mapping[str, Callable[..., None]] = {
    "replace": _replace,
    "swap": _swap,
    "cut": _cut,
    "bytes": _bytes,
    "remove": _remove,
    "drop": _drop,
    "text": _text,
    "rows": _rows,
    "value": _value,
    "entry": _entry,
    "forget": _forget,
}


@contextmanager
def _changed(kind: str, path: Path) -> Iterator[tuple[Recording, Path]]:
    """Give the recording and a folder with all that a recipe says done to it; what cannot be done is left out."""
    recipe = json.loads(path.read_bytes())
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        folder = Path(shutil.copytree(_whole(kind, recipe["of"]), Path(scratch) / kind))
        for name, *arguments in recipe["steps"]:
            with suppress(OSError, ValueError, LookupError, TypeError, pa.ArrowException):  # an earlier step spoiled it
                _DONE[name](folder, *arguments)
        if recipe["mended"]:
            mend(folder)
        yield _recording(recipe["of"]), folder


# ---------------------------------------------------------------------------------------------------------
# Readers
# ---------------------------------------------------------------------------------------------------------


def read_changed_history(path: Path) -> str:
    """Resolve a History, and continue it."""
    with _changed("history", path) as (recording, folder):
        history = Folder(str(folder))
        options = ResolveOptions(history=history, all_outcomes=True)
        out = Folder(str(folder.parent / "out"))
        run_by("local", recording.run(), out, options=options)
        ingest(in_process, recording.run(), history)
    return "read"


def read_changed_result(path: Path) -> str:
    """Read all of a result, in every way that there is."""
    with _changed("result", path) as (recording, folder):
        result = read_result(str(folder))
        _read_all(result)
        for by in By:
            result.conflicts_by(by)
        if (recording.original / "run.toml").exists():  # else a result does not say what it was made of
            explain_differences(result)
    return "read"


def _read_all(result: Result) -> None:
    str(result.summary)
    result._repr_html_()
    for table in result.tables:
        result.outcomes(table=table)
        result.exceptions(table)
        for cluster in result.clusters:
            result.rows(cluster, table)
    for cluster in result.clusters:
        result.applied_epochs(cluster)
