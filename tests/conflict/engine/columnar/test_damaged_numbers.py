"""Numbers in a History that would lead outside the arrays that they index."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from conflict.errors import HistoryError
from conflict.history.grid.catalogue import facts_of
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest, read_manifest, refuse_damage, with_files, write_manifest
from conflict.history.grid.schemas import CHANGES, CONSEQUENCES, KEYS, keys_part, part
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.runs.resolving.resolve_job import resolve_history
from tests.conflict.growing import DEMO, Recording, ingested

SCHEMAS = {"changes": CHANGES, "consequences": CONSEQUENCES, "keys": KEYS}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Return a copy of the demo."""
    return Recording.copy(DEMO, tmp_path_factory.mktemp("demo") / "demo")


@pytest.fixture(scope="module")
def whole(demo: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a History of the demo."""
    folder = tmp_path_factory.mktemp("whole") / "history"
    ingested(demo, Folder(str(folder)))
    return folder


def path_of(kind: str, history: Folder, manifest: Manifest) -> str:
    """Return the path of a file with rows."""
    places = [keys_part(bucket, 0) for bucket in range(2)]
    if kind != "keys":
        places = [part(kind, "A", bucket, batch) for batch in manifest.batches for bucket in range(2)]
    return next(place for place in places if history.exists(place))


def altered(history: Folder, kind: str, column: str, value: object) -> None:
    """Give a row another value, and list its file anew, as only somebody can who means it."""
    manifest = read_manifest(history)
    path = path_of(kind, history, manifest)
    table = history.read_table(path, SCHEMAS[kind])
    values = table.column(column).to_pylist()
    values[-1] = value
    place = table.schema.get_field_index(column)
    field = table.schema.field(place)
    plain = pa.array(values, field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
    array = plain.dictionary_encode() if pa.types.is_dictionary(field.type) else plain
    history.write_table(path, table.set_column(place, field, array))
    others = [each for each in history.sizes() if "/" in each and not each.startswith("catalogue/")]
    write_manifest(history, with_files(history, manifest, 0, facts_of(history, others)))
    refuse_damage(history, read_manifest(history))


def resolved(demo: Recording, history: Folder, out: Path) -> None:
    """Resolve a History."""
    resolve_history(in_process, Run(demo.configuration), history, Folder(str(out)))


BAD = [
    *(("changes", "key", value) for value in (-1, -(2**31), 10**6, 2**31 - 1)),
    *(("changes", "operation", value) for value in (0, 6, -128, 127)),
    *(("consequences", "key", value) for value in (-1, 10**6)),
    *(("consequences", "effect", value) for value in (0, 5, -128)),
    *(("keys", "table", value) for value in (-1, 3, 2**15 - 1)),
    *(("changes", "file", value) for value in (-2, 1, 2**15 - 1)),
]


@pytest.mark.parametrize(("kind", "column", "value"), BAD)
def test_numbers_out_of_range_are_refused(
    kind: str, column: str, value: int, demo: Recording, whole: Path, tmp_path: Path
):
    """By name of the column and its files, with what is there and what may be there."""
    history = Folder(str(shutil.copytree(whole, tmp_path / "history")))
    altered(history, kind, column, value)
    with pytest.raises(HistoryError, match=rf"column {column} of {kind}/.* holds {value}, which is not from -?\d to "):
        resolved(demo, history, tmp_path / "out")


@pytest.mark.parametrize("column", ["before_columns", "after_columns"])
def test_columns_that_a_table_does_not_have_are_refused(column: str, demo: Recording, whole: Path, tmp_path: Path):
    """Which an image says that it carries."""
    history = Folder(str(shutil.copytree(whole, tmp_path / "history")))
    altered(history, "changes", column, b"\xff\xff\x01")
    with pytest.raises(HistoryError, match="an image in bucket 0 carries columns that its table does not have"):
        resolved(demo, history, tmp_path / "out")


@pytest.mark.parametrize("value", [2**31 - 1, -(2**31)])
@pytest.mark.parametrize("column", ["group", "ordinal", "flags", "row"])
def test_other_numbers_lead_nowhere(column: str, value: int, demo: Recording, whole: Path, tmp_path: Path):
    """They are compared or shown, so any number gives a result or an error of the project."""
    history = Folder(str(shutil.copytree(whole, tmp_path / "history")))
    altered(history, "changes", column, value >> 16 if column == "flags" else value)
    try:
        resolved(demo, history, tmp_path / "out")
    except HistoryError:
        return
    assert (tmp_path / "out/applied_epochs").exists()
