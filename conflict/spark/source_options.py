"""
Options of the data sources as Spark hands them on: of a query, of a table of a catalog, and their paths.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from pyspark.sql.types import StructType

from conflict.config.text_file import place_of, refuse_address
from ndb_formats.stored import is_address

_PROVIDER = "provider"  # among the options of a table that is created in a catalog


def given_options(
    source: str, options: Mapping[str, str], known: Collection[str], schema: StructType | None
) -> dict[str, str]:
    """
    Return the options by their names in lower-case letters.

    A table of a catalog has its options when it is created, among what the catalog says of it. Those who read it
    have only its columns, so the first one keeps them (`keep_options`).

    Args:
        source: The name of the data source.
        options: What Spark gives.
        known: The names of its options.
        schema: The columns that are wanted, if it is known.
    """
    if schema is not None and not options:
        return dict(schema.fields[0].metadata.get(source, {}))
    given = {name.lower(): value for name, value in options.items()}
    return {name: value for name, value in given.items() if name in known} if _PROVIDER in given else given


def keep_options(source: str, options: Mapping[str, str], given: Mapping[str, str], schema: StructType) -> StructType:
    """Let the columns of a table that is created in a catalog keep its options."""
    if _PROVIDER in {name.lower() for name in options}:
        schema.fields[0].metadata = {source: dict(given)}
    return schema


def place_here(path: str, folder: str, what: str, *, stored: bool = True) -> str:
    """
    Return a path as tasks know it.

    Args:
        path: The path; one on this machine may begin with ``file:``.
        folder: Where relative paths begin.
        what: What it is, for messages.
        stored: Whether it may be an address of object storage.

    Raises:
        ConfigurationError: It is an address that cannot be opened, or that may not be given.
    """
    local = path.removeprefix("file:")
    if stored and is_address(local):
        return str(place_of(local, what))
    refuse_address(local, what)
    return path if path != local else str(Path(folder, path))
