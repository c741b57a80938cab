"""Catalogues and digests of a folder made to fit what is in it, written from the description of their formats."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from conflict.history.grid.catalogue import CATALOGUE
from conflict.history.grid.folder import Folder

__all__ = ["mend"]

_END = 1 << 16


def mend(folder: Path) -> None:
    """Let the catalogue of a History or a result list the files as they are; damaged documents stay as they are."""
    with suppress(ValueError, LookupError, TypeError, AttributeError, OSError):
        if (folder / "history.json").exists():
            _mend_history(folder)
        else:
            _mend_result(folder)


def _mend_history(folder: Path) -> None:
    document = json.loads((folder / "history.json").read_text())
    catalogues = [each["path"] for each in document["listed"] if each["path"].startswith("catalogue/")]
    others = [path for path in _parquet(folder) if not path.startswith("catalogue/") and path != "schedule.parquet"]
    _write_catalogue(folder, catalogues[0], others)
    for path in catalogues[1:]:
        _write_catalogue(folder, path, [])
    document["listed"] = [_facts(folder, path) for path in [*catalogues, "schedule.parquet"]]
    plain = {name: value for name, value in document.items() if name not in ("format", "digest")}
    document["digest"] = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
    (folder / "history.json").write_text(json.dumps(document))


def _mend_result(folder: Path) -> None:
    document = json.loads((folder / "run.json").read_text())
    others = [path for path in [*_parquet(folder), "counters.json"] if path != "files.parquet"]
    _write_catalogue(folder, "files.parquet", others)
    document["files"] = _facts(folder, "files.parquet")
    (folder / "run.json").write_text(json.dumps(document))


def _parquet(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))


def _write_catalogue(folder: Path, path: str, files: list[str]) -> None:
    facts = [_facts(folder, each) for each in files]
    Folder(str(folder)).write_table(path, pa.Table.from_pylist(facts, CATALOGUE))


def _facts(folder: Path, path: str) -> dict[str, Any]:
    data, rows = (folder / path).read_bytes(), 0
    if path.endswith(".parquet"):
        with suppress(OSError, pa.ArrowException):
            rows = pq.read_metadata(folder / path).num_rows
    return {"path": path, "rows": rows, "bytes": len(data), "digest": hashlib.sha256(data[-_END:]).hexdigest()}
