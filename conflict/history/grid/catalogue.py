"""
The catalogue of a folder: which files it is made of, so that none is used that is missing, cut, foreign or changed.

A file is known by its size, its rows, and a digest of its end. The end of a Parquet file describes all its pages, and
each page that `conflict.history.grid.folder` writes has a checksum, which is compared when the page is read. So nothing
is read only to be checked. It protects from accidents, not from somebody who may write to the folder.

What can be checked in a column or in a document is checked there, before it is used. The rest shows only when files are
put together that are sound each by itself: a row without an image that it must have, a group that no epoch names.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import attrs
import pyarrow as pa

from conflict.errors import ConflictError, HistoryError
from conflict.history.grid.folder import Folder, is_of_storage
from conflict.history.grid.schemas import table_of_rows
from ndb_formats.errors import FormatError

CATALOGUE = pa.schema([("path", pa.string()), ("rows", pa.int64()), ("bytes", pa.int64()), ("digest", pa.string())])
_END = 1 << 16
_NAMED = 3  # damages in a message
_THREADS = 8  # a file waits for its storage


@attrs.frozen
class FileFacts:
    """
    What one file is.

    Attributes:
        path: Where it is below the folder.
        rows: Its rows; 0 if it is no Parquet file.
        bytes: Its size.
        digest: SHA-256 of its last 64 KiB.
    """

    path: str
    rows: int
    bytes: int
    digest: str


def catalogue_part(batch: int) -> str:
    """Return the path of the catalogue of the files that one batch added, below the History."""
    return f"catalogue/batch={batch:05d}.parquet"


def facts_of(folder: Folder, paths: Iterable[str]) -> list[FileFacts]:
    """Return what files are; those that do not exist are left out."""
    sizes = folder.sizes(paths)
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(lambda path: _facts(folder, path, sizes[path]), sizes))


def _facts(folder: Folder, path: str, size: int) -> FileFacts:
    rows = folder.rows(path) if path.endswith(".parquet") else 0
    return FileFacts(path, rows, size, _digest(folder, path, size))


def _digest(folder: Folder, path: str, size: int) -> str:
    start = max(size - _END, 0)
    return hashlib.sha256(folder.read_range(path, start, size - start)).hexdigest()


def write_catalogue(folder: Folder, path: str, facts: Iterable[FileFacts]) -> FileFacts:
    """Write the facts of files to a file, and return what that is."""
    folder.write_table(path, table_of_rows([attrs.astuple(each) for each in facts], CATALOGUE))
    (own,) = facts_of(folder, [path])
    return own


def read_catalogue(folder: Folder, path: str) -> list[FileFacts]:
    """Read what `write_catalogue` wrote."""
    return [FileFacts(**row) for row in folder.read_table(path, CATALOGUE).to_pylist()]


def damages(folder: Folder, facts: Iterable[FileFacts], there: Mapping[str, int]) -> Iterator[str]:
    """
    Yield in words which files are not what they were when they were written.

    Args:
        folder: The folder.
        facts: What they were.
        there: The size of each file that is there now.
    """
    whole = []
    for each in facts:
        size = there.get(each.path)
        if size is None:
            yield f"{each.path} is missing"
        elif size != each.bytes:
            yield f"{each.path} has {size} bytes, but {each.bytes} were written"
        else:
            whole.append(each)
    with ThreadPoolExecutor(_THREADS) as threads:
        digests = threads.map(lambda each: _digest(folder, each.path, each.bytes), whole)
        for each, digest in zip(whole, digests, strict=True):
            if digest != each.digest:
                yield f"{each.path} has changed since it was written"


def refuse_damages(what: str, found: Iterable[str], remedy: str) -> None:
    """
    Make sure that nothing was found damaged.

    Args:
        what: What was looked at.
        found: What is damaged.
        remedy: What to do, a sentence without its full stop.

    Raises:
        HistoryError: Something was found.
    """
    first = list(islice(found, _NAMED + 1))
    if first:
        more = " and more" if len(first) > _NAMED else ""
        message = f"{what} is not as it was written: {'; '.join(first[:_NAMED])}{more}. {remedy}"
        raise HistoryError(message)


_OF_PYTHON = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError)
_SHOWN = (*_OF_PYTHON, OSError, pa.ArrowException)


@contextmanager
def refusing_contradictions(folder: Folder | None, remedy: str) -> Iterator[None]:
    """
    Say of a folder that was not made in this run that its files contradict each other, if that is what happens.

    Args:
        folder: The folder that is read inside the block; None if it is made there.
        remedy: What to do, a sentence without its full stop.

    Raises:
        HistoryError: They do; it names the place in the program, in case that the folder is sound and this is a fault.
    """
    try:
        yield
    except (ConflictError, FormatError):
        raise
    except _SHOWN as error:
        if folder is None or is_of_storage(error):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        cause = " ".join(str(error).split())[:200]
        where = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}" + (cause and f": {cause}")
        message = f"the files in {folder.uri} contradict each other ({where}). {remedy}"
        raise HistoryError(message) from error
