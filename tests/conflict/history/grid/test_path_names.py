"""Names of databases and tables as parts of paths."""

import re
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.errors import ConfigurationError
from conflict.history.grid import path_names as module
from conflict.history.grid.path_names import (
    LONGEST,
    name_of,
    path_part,
    refuse_same_paths,
    table_as_path,
    table_folder,
)
from ndb_formats.schema.tables import full_name, split_full_name

ODD = [
    "..",
    ".",
    "a/b",
    "../../x",
    "_hidden",
    "a=b",
    "%41",
    "t\n\x1b[31m",
    "\udcff",
    "été",
    "e\u0301",
    "a.b",
    "a`b",
    "`",
]
NAMES = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8
) | st.sampled_from(ODD)


@given(NAMES, NAMES)
def test_a_path_names_one_table_and_stays_below(database: str, table: str) -> None:
    """The encoding is reversible and ASCII, and has no separators, control characters or hidden names."""
    folder = table_folder(database, table)
    assert [name_of(part) for part in folder.parts] == [database, table]
    assert re.fullmatch(r"[A-Za-z0-9%$-][\w%$-]*/[A-Za-z0-9%$-][\w%$-]*", str(folder), re.ASCII)
    assert table_as_path(full_name(database, table)) == ".".join(folder.parts)


@given(NAMES, NAMES)
def test_a_full_name_is_of_one_table(database: str, table: str) -> None:
    """It can be divided again, also where parts have dots and backticks."""
    assert split_full_name(full_name(database, table)) == (database, table)


def test_names_with_dots_are_not_mixed_up() -> None:
    """`a.b`.`c` and `a`.`b.c`."""
    assert (full_name("a.b", "c"), full_name("a", "b.c"), full_name("a", "b")) == ("`a.b`.c", "a.`b.c`", "a.b")
    assert table_as_path("`a.b`.c") == "a%2Eb.c"
    assert split_full_name("no table") == ("no table", "")


def test_plain_names_stay_as_they_are() -> None:
    """ASCII letters, digits, ``_``, ``-`` and ``$``; normalization changes nothing of the others."""
    assert table_folder("shop", "orders_2$EX") == PurePosixPath("shop/orders_2$EX")
    assert table_folder("a.b", "c d") == PurePosixPath("a%2Eb/c%20d")
    assert path_part("é") == "%C3%A9"


@pytest.mark.parametrize("name", ["語" * 64, "x" * 101, "\udcff" * 64])
def test_long_names_are_cut(name: str) -> None:
    """They end in a digest, so two of them differ."""
    assert len(path_part(name)) == LONGEST
    assert path_part(name) != path_part(name[:-1] + "y")
    assert "~" in path_part(name)


def test_names_that_differ_in_case_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Are refused where the filesystem does not tell case apart."""
    refuse_same_paths(tmp_path, ["d.t", "d.T"])
    monkeypatch.setattr(module, "_folds_case", lambda folder: True)
    refuse_same_paths(tmp_path, ["d.t", "d.t", "d.u"])
    with pytest.raises(ConfigurationError, match=r"names of tables d\.T and d\.t differ in case alone"):
        refuse_same_paths(tmp_path, ["d.t", "d.T"])
