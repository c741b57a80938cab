"""
Libraries that the small installation lacks (docs/install.md): they are imported where they are needed, or named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from conflict.errors import ConfigurationError

if TYPE_CHECKING:
    import pandas as pd

DISTRIBUTION = "ndb-conflict"
# By module: the extra in pyproject.toml that brings it, and what needs it.
EXTRAS = {
    "matplotlib": ("plot", "pictures need matplotlib"),
    "pandas": ("pandas", "a DataFrame of pandas needs pandas"),
    "polars": ("polars", "a DataFrame of polars needs polars"),
    "pymysql": ("server", "asking a running server needs PyMySQL"),
    "pyspark": ("spark", "Spark needs pyspark"),
}


def imported(module: str) -> ModuleType:
    """
    Return a module of `EXTRAS`.

    Raises:
        ConfigurationError: It is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        extra, need = EXTRAS[module]
        message = f"{need}, which is not installed: {install_command(extra)}"
        raise ConfigurationError(message) from None


def install_command(extra: str) -> str:
    """
    Return what to type to have the libraries of an extra.

    It names the libraries: with the extra, pip would complete the small installation with all that the whole one has.
    """
    from importlib.metadata import requires  # noqa: PLC0415  # it takes longer to load than all of `import conflict`

    marker = f'extra == "{extra}"'
    found = (line.partition(";") for line in requires(DISTRIBUTION) or ())
    return " ".join(["pip install", *(f"'{name.strip()}'" for name, _, condition in found if marker in condition)])


def data_frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> pd.DataFrame:
    """
    Return rows as a DataFrame of pandas.

    Args:
        rows: The rows, by column.
        columns: The columns; those of the rows by default.

    Raises:
        ConfigurationError: pandas is not installed.
    """
    return imported("pandas").DataFrame(rows, columns=columns)


def program_version() -> str:
    """Return the version of this program, as it is installed."""
    from importlib.metadata import version  # noqa: PLC0415  # as above

    return version(DISTRIBUTION)
