"""Names of tables as names of folders."""

from pathlib import PurePosixPath

from hypothesis import given
from hypothesis import strategies as st

from conflict.decoding.table_names import folder_of, table_of

NAMES = st.text(
    st.characters(exclude_characters="\0", exclude_categories=[]), min_size=1, max_size=8
) | st.sampled_from(["..", ".", "a/b", "../../x", "_hidden", "a=b", "%41", "t\n\x1b[31m", "\udcff", "été"])


@given(NAMES, NAMES)
def test_a_folder_names_one_table_and_stays_below(database: str, table: str) -> None:
    """The encoding is reversible, and has no separators, control characters or hidden names."""
    try:
        folder = folder_of(database, table)
    except UnicodeEncodeError:
        return  # a surrogate that no binlog gives
    assert table_of(folder) == (database, table)
    assert len(folder.parts) == 2
    for part in folder.parts:
        assert part.isprintable()
        assert part[0] not in "._"
        assert not set("/\\=:") & set(part)


def test_plain_names_stay_as_they_are() -> None:
    """Letters, digits, ``_``, ``-`` and ``$``."""
    assert folder_of("shop", "orders_2$EX") == PurePosixPath("shop/orders_2$EX")
    assert folder_of("a.b", "c d") == PurePosixPath("a%2Eb/c%20d")
