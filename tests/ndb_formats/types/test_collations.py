"""Equality of texts: what a real server said of recorded pairs, and laws."""

import json
import lzma
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.errors import UnsupportedError
from ndb_formats.types.charsets import encode_text
from ndb_formats.types.collation_names import collation_of
from ndb_formats.types.collations import comparison_of, is_exact, table_of
from tests.corpora import RECORDINGS, SHARED

KNOWN = [found.name for number in range(1, 400) if (found := collation_of(number)) is not None and is_exact(found.name)]
Pairs = list[tuple[bytes, bytes, bool]]


def pairs_of(lines: list[str]) -> dict[str, Pairs]:
    """Return the pairs of each collation, and whether the server says that they are equal."""
    found = [json.loads(line) for line in lines]
    return {
        each["collation"]: [(bytes.fromhex(one), bytes.fromhex(two), bool(equal)) for one, two, equal in each["pairs"]]
        for each in found
    }


@cache
def recorded() -> dict[str, Pairs]:
    """Return the pairs that `tests.mysql_server.record_pairs` recorded."""
    path = RECORDINGS / "collations" / "pairs.jsonl.xz"
    return pairs_of(lzma.decompress(path.read_bytes()).decode().splitlines())


def disagreements(collation: str, pairs: Pairs) -> list[tuple[str, str, bool]]:
    """Return the pairs of which the project says something else."""
    key = comparison_of(collation).key
    return [(one.hex(), two.hex(), equal) for one, two, equal in pairs if (key(one) == key(two)) is not equal]


def test_recorded_pairs():
    """Every pair is one key or two, as the server said."""
    wrong = {collation: found for collation, pairs in recorded().items() if (found := disagreements(collation, pairs))}
    assert not wrong
    assert len(recorded()) > 240
    # Its texts are equal only to themselves.
    assert [name for name, pairs in recorded().items() if not any(equal for *_, equal in pairs)] == ["utf8mb4_0900_bin"]


@pytest.mark.corpus("collations")
def test_pairs_of_the_corpus():
    """Every pair is one key or two, as the server said, or its collation is refused for keys."""
    pairs = pairs_of((SHARED / "collations" / "pairs.jsonl").read_text().splitlines())
    assert [name for name in pairs if not is_exact(name)] == ["sjis_japanese_ci", "gbk_chinese_ci"]
    wrong = {name: found for name in pairs if is_exact(name) and (found := disagreements(name, pairs[name]))}
    assert not wrong


@pytest.mark.parametrize("collation", ["gbk_chinese_ci", "sjis_japanese_ci", "latin2_czech_cs", "utf8mb4_klingon_ci"])
def test_a_collation_without_a_table_is_refused(collation: str):
    """The refusal names it; on demand letter case is ignored as its name says."""
    with pytest.raises(UnsupportedError, match=collation):
        comparison_of(collation)
    inexact = comparison_of(collation, inexact=True)
    assert (inexact.key(b"KEY") == inexact.key(b"key")) is collation.endswith("_ci")


# Equal or not by the manual's pages on Unicode collations, and by contractions of languages.
@pytest.mark.parametrize(
    ("collation", "one", "two", "equal"),
    [
        ("utf8mb4_general_ci", "ß", "s", True),
        ("utf8mb4_general_ci", "ß", "ss", False),
        ("utf8mb4_unicode_ci", "ß", "ss", True),
        ("utf8mb4_general_ci", "😀", "😁", True),
        ("utf8mb4_unicode_ci", "😀", "😁", True),
        ("utf8mb4_0900_ai_ci", "😀", "😁", False),
        ("utf8mb4_german2_ci", "ä", "ae", True),
        ("utf8mb4_danish_ci", "aa", "å", True),
        ("utf8mb4_da_0900_ai_ci", "aa", "å", True),
        ("utf8mb4_swedish_ci", "aa", "å", False),
        ("utf8mb4_0900_ai_ci", "a\0b", "ab", True),
        ("utf8mb4_0900_ai_ci", "co\u00adop", "coop", True),
        ("utf8mb4_general_ci", "a\0b", "ab", False),
        ("utf8mb4_unicode_ci", "a ", "a", True),
        ("utf8mb4_unicode_ci", "a ", "a\u00a0", True),
        ("utf8mb4_0900_as_cs", "a ", "a", False),
        ("utf8mb4_0900_as_cs", "e\u0301", "é", True),
        ("utf8mb4_bin", "e\u0301", "é", False),
        ("utf8mb4_tr_0900_ai_ci", "I", "i", False),
        ("utf8mb4_ja_0900_as_cs", "か", "カ", True),
        ("utf8mb4_ja_0900_as_cs_ks", "か", "カ", False),
    ],
)
def test_known_equalities(collation: str, one: str, two: str, equal: bool):
    """As the manual, or a dictionary of the language, has it."""
    key = comparison_of(collation).key
    assert (key(one.encode()) == key(two.encode())) is equal


@pytest.mark.parametrize("charset", ["armscii8", "dec8", "geostd8", "keybcs2", "swe7"])
def test_bytes_of_a_character_set_without_a_codec(charset: str):
    """Under `_bin` only equal bytes are equal; blanks at the end do not count."""
    key = comparison_of(f"{charset}_bin").key
    assert key(b"a\xe5  ") == key(b"a\xe5") != key(b"a\xc5")


texts = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("aAchCHlLåßéか ー\0\u0301\u00a0"), max_size=6
)
UTF8 = st.sampled_from(sorted(name for name in KNOWN if name.startswith("utf8mb4_")))
ROOTS = st.sampled_from(["unicode_ci", "unicode_520_ci", "general_ci", "swedish_ci", "0900_ai_ci", "0900_as_cs"])


@given(UTF8, texts, st.integers(1, 3))
def test_blanks_at_the_end(name: str, text: str, blanks: int):
    """They count under NO PAD, and under PAD SPACE they do not."""
    key = comparison_of(name).key
    assert (key(encoded(text)) == key(encoded(text + " " * blanks))) is ("_0900_" not in name)


@given(ROOTS, texts, texts)
def test_texts_are_put_together(name: str, one: str, two: str):
    """Without contractions, the canonical text of two texts is that of the one and that of the other."""
    table = table_of(name)
    assert table is not None
    assert table.canonical(one + two) == table.canonical(one) + table.canonical(two)


@given(st.sampled_from(["general_ci", "unicode_ci", "danish_ci", "bin"]), texts)
def test_unicode_character_sets_are_alike(rest: str, text: str):
    """The bytes of a text differ between character sets, and its key does not."""
    keys = {
        comparison_of(f"{charset}_{rest}").key(encode_text(text, charset)) for charset in ("utf8mb4", "utf16", "utf32")
    }
    assert len(keys) == 1


def encoded(text: str) -> bytes:
    """Return the bytes of a text in UTF-8."""
    return encode_text(text, "utf8mb4")
