"""Collations by number: spot checks of every block."""

import pytest

from ndb_formats.types.collation_names import Collation, collation_named, collation_of

# As in `SELECT id, collation_name, character_set_name FROM information_schema.collations` and MAXLEN of the set.
KNOWN = [
    (1, "big5_chinese_ci", "big5", 2),
    (8, "latin1_swedish_ci", "latin1", 1),
    (12, "ujis_japanese_ci", "ujis", 3),
    (33, "utf8mb3_general_ci", "utf8mb3", 3),
    (46, "utf8mb4_bin", "utf8mb4", 4),
    (47, "latin1_bin", "latin1", 1),
    (54, "utf16_general_ci", "utf16", 4),
    (63, "binary", "binary", 1),
    (94, "latin1_spanish_ci", "latin1", 1),
    (101, "utf16_unicode_ci", "utf16", 4),
    (124, "utf16_vietnamese_ci", "utf16", 4),
    (151, "ucs2_vietnamese_ci", "ucs2", 2),
    (160, "utf32_unicode_ci", "utf32", 4),
    (213, "utf8mb3_croatian_ci", "utf8mb3", 3),
    (223, "utf8mb3_general_mysql500_ci", "utf8mb3", 3),
    (246, "utf8mb4_unicode_520_ci", "utf8mb4", 4),
    (250, "gb18030_unicode_520_ci", "gb18030", 4),
    (255, "utf8mb4_0900_ai_ci", "utf8mb4", 4),
    (256, "utf8mb4_de_pb_0900_ai_ci", "utf8mb4", 4),
    (273, "utf8mb4_eo_0900_ai_ci", "utf8mb4", 4),
    (277, "utf8mb4_vi_0900_ai_ci", "utf8mb4", 4),
    (278, "utf8mb4_0900_as_cs", "utf8mb4", 4),
    (300, "utf8mb4_vi_0900_as_cs", "utf8mb4", 4),
    (304, "utf8mb4_ja_0900_as_cs_ks", "utf8mb4", 4),
    (305, "utf8mb4_0900_as_ci", "utf8mb4", 4),
    (309, "utf8mb4_0900_bin", "utf8mb4", 4),
    (310, "utf8mb4_nb_0900_ai_ci", "utf8mb4", 4),
    (315, "utf8mb4_sr_latn_0900_as_cs", "utf8mb4", 4),
    (323, "utf8mb4_mn_cyrl_0900_as_cs", "utf8mb4", 4),
]


@pytest.mark.parametrize(("number", "name", "charset", "max_bytes"), KNOWN)
def test_known_collations(number: int, name: str, charset: str, max_bytes: int):
    """Number, name, character set and its longest character belong together."""
    assert collation_of(number) == Collation(number, name, charset, max_bytes)


@pytest.mark.parametrize("number", [0, 17, 100, 125, 152, 251, 272, 276, 295, 299, 301, 324, 70000])
def test_numbers_that_are_no_collation(number: int):
    """Gaps between the blocks are nothing."""
    assert collation_of(number) is None


def test_there_are_286():
    """As many as `information_schema.collations` of MySQL 8.0.30 and later has; all have names of their own."""
    collations = [found for number in range(576) if (found := collation_of(number))]
    assert len(collations) == 286
    assert len({collation.name for collation in collations}) == 286


def test_mariadb_has_():
    """As many numbers from 576 on as `COLLATION_CHARACTER_SET_APPLICABILITY` of MariaDB 10.11 has."""
    assert len([number for number in range(576, 4096) if collation_of(number)]) == 1023


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (1032, "latin1_swedish_nopad_ci"),
        (1070, "utf8mb4_nopad_bin"),
        (1174, "ucs2_unicode_520_nopad_ci"),
        (2304, "utf8mb4_uca1400_ai_ci"),
        (2495, "utf8mb4_uca1400_vietnamese_nopad_as_cs"),
        (3271, "utf32_uca1400_croatian_nopad_as_cs"),
    ],
)
def test_collations_of_mariadb(number: int, name: str):
    """Numbers and full names as a MariaDB 10.11 server lists them."""
    found = collation_of(number)
    assert found is not None
    assert (found.name, found.charset) == (name, name.split("_", maxsplit=1)[0])


def test_a_short_name_of_mariadb_needs_its_character_set():
    """`uca1400_ai_ci` fits five character sets."""
    assert collation_named("uca1400_ai_ci") is None
    found = collation_named("uca1400_ai_ci", "utf16")
    assert found is not None
    assert found.number == 2816
