"""
What users name in paths: text files and the place of a fault in them, addresses of object storage, folders of results.

Only what reads and writes on object storage takes addresses; anything else refuses them by name, and so it does a
folder that a command wrote where something else is wanted.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from conflict.documents import Must
from conflict.errors import ConfigurationError
from conflict.extras import install_command
from ndb_formats.errors import FormatError
from ndb_formats.stored import ADDRESS, Stored, path_of, storage

# By files that tell it from others: what a folder is that a command wrote, and which commands read it.
_WRITTEN = (
    (("history.json",), "a History", "resolve and compare read a History, with --history"),
    (("run.json", "counters.json"), "a result", "conflicts, explain and report read a result"),
    (("run.json",), "a comparison or a sweep", "report reads it"),
)


def plain_path(path: Path | str) -> Path:
    """
    Return the name that data give to a file: absolute, and without ``..``, so that rows of one file join.

    Other links stay as they are given, because the name of a binlog has its number.
    """
    if isinstance(path, Stored):
        return path
    plain = Path("/")
    for part in Path(path).absolute().parts[1:]:
        if part == "..":
            plain = (plain.resolve() if plain.is_symlink() else plain).parent
        else:
            plain /= part
    return plain


def place_of(given: Path | str, what: str = "the path") -> Path:
    """
    Return a path, or an address of object storage as one; nothing is asked there.

    Args:
        given: The path or address; also what `Path` made of an address.
        what: What it is for, such as ``--out``.

    Raises:
        ConfigurationError: It is an address, of nothing that can be read here.
    """
    path = path_of(given)
    if not isinstance(path, Stored):
        return path
    address, scheme = str(path), path.parts[0]
    if scheme in _MOUNTED:
        refuse_address(str(given), what)
    try:
        storage(address)
    except ImportError as error:
        remedy = f"for s3://, {install_command('s3')}; {_OTHERS}"
        message = f"{what} is {address}, and reading {scheme}// lacks a package: {error}; {remedy}"
        raise ConfigurationError(message) from error
    except Exception as error:  # each library has its own
        message = f"{what} is {address}, which cannot be opened here: {' '.join(str(error).split())}; {_KNOWN}"
        raise ConfigurationError(message) from error
    return path.anew()


def _readable(name: str) -> str:
    place_of(name)
    return name


# Entries of documents that name files: one, several, or either.
FileName = Annotated[str, Must("a file name", lambda name: name != "" and "\0" not in name, convert=_readable)]
FileNames = Annotated[tuple[FileName, ...], Must("a list of file names or patterns")]


def places_of(given: Path | str | Iterable[Path | str]) -> list[Path]:
    """Return the paths of what is given as one or as several; see `place_of`."""
    return [place_of(each) for each in ([given] if isinstance(given, Path | str) else given)]


_MOUNTED = {"file:": "give the path itself", "dbfs:": "give what Databricks mounts, as /dbfs/... or /Volumes/..."}
_OTHERS = "other storage needs the package that fsspec names"
_KNOWN = "give a path, or an address that fsspec knows, as s3:// (s3a:// is the same), gs:// or abfs://"


def refuse_address(text: str, what: str) -> None:
    """
    Refuse a path that is an address of another filesystem.

    Args:
        text: The path as given.
        what: What it is for, such as ``--out``.

    Raises:
        ConfigurationError: It is one.
    """
    if (found := ADDRESS.match(text)) is not None:
        remedies = {**_MOUNTED, "memory:": "what is there ends with the command; give a path"}
        local = remedies.get(f"{found[1].lower()}:", "mount it, or copy the files, and give a path")
        message = f"{what} is {text}, an address of a filesystem that is not read or written here; {local}"
        raise ConfigurationError(message)


def what_commands_wrote(folder: Path, wanted: str, give: str) -> str | None:
    """
    Return what a folder is that a command wrote, and which commands read it; None for all other folders.

    Args:
        folder: The folder.
        wanted: What is wanted in its place: ``binlogs``.
        give: What to give instead.
    """
    for files, what, readers in _WRITTEN:
        if all((folder / name).is_file() for name in files):
            return f"{folder} is {what}, not {wanted}; give {give}; {readers}"
    return None


def read_text(path: Path) -> str:
    """
    Return the text of a UTF-8 file, without a byte order mark.

    Raises:
        ConfigurationError: It cannot be opened, is a folder, a pipe or a device, or is not UTF-8.
    """
    path = place_of(path, "the file")
    try:
        # Reading a pipe waits, and a device may have no end.
        readable = isinstance(path, Stored) or path.is_file() or not path.exists()
        if readable:
            return path.read_text("utf-8-sig")
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise ConfigurationError(message) from error
    except UnicodeDecodeError as error:
        message = f"{path}: not UTF-8 text ({error})"
        raise ConfigurationError(message) from error
    except ValueError as error:  # a NUL in the path
        message = f"{path}: {error}"
        raise ConfigurationError(message) from error
    message = f"{path}: it is no regular file; give a text file"
    raise ConfigurationError(message)


def parsed_toml(text: str) -> dict[str, Any]:
    """
    Return the document of a TOML text.

    Raises:
        ConfigurationError: It is not TOML, is nested too deeply, or has a number that is too long.
    """
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        message = "it is nested too deeply"
        raise ConfigurationError(message) from error
    except ValueError as error:  # TOMLDecodeError among others
        raise ConfigurationError(str(error)) from error


@contextmanager
def located(place: object) -> Iterator[None]:
    """
    Put a place before the message of every error in the block.

    Raises:
        ConfigurationError: For a configuration or format error in the block.
    """
    try:
        yield
    except (ConfigurationError, FormatError) as error:
        # Places of files and of lines in them read as one: "rows.sql, line 3: ..."
        separator = ", " if str(error).startswith(("line ", "row ")) else ": "
        raise ConfigurationError(f"{place}{separator}{error}") from error
