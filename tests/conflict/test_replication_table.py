"""mysql.ndb_replication: which row counts."""

import pytest

from conflict.replication_table import AmbiguousMatch, ReplicationRow, best_match


def matches(row: ReplicationRow, database: str = "shop", table: str = "orders", server_id: int = 3) -> bool:
    """Whether a row is found for a table."""
    return best_match([row], database, table, server_id) is row


def test_no_rows():
    """Without rows nothing counts."""
    assert best_match([], "shop", "orders", 3) is None


def test_no_match():
    """A row for another database, table or server does not count."""
    rows = [
        ReplicationRow("other", "orders"),
        ReplicationRow("shop", "other"),
        ReplicationRow("shop", "orders", server_id=4),
    ]
    assert best_match(rows, "shop", "orders", 3) is None


# From the best to the worst: an exact database counts 4, an exact table 2, an exact server id 1.
BY_QUALITY = [
    ReplicationRow("shop", "orders", 3),
    ReplicationRow("shop", "orders", 0),
    ReplicationRow("shop", "%", 3),
    ReplicationRow("shop", "%", 0),
    ReplicationRow("%", "orders", 3),
    ReplicationRow("%", "orders", 0),
    ReplicationRow("%", "%", 3),
    ReplicationRow("%", "%", 0),
]


@pytest.mark.parametrize("best", range(len(BY_QUALITY)))
@pytest.mark.parametrize("step", [1, -1])
def test_the_best_row_counts(best: int, step: int):
    """Database weighs more than table and server together, table more than server, in any order of rows."""
    assert best_match(BY_QUALITY[best:][::step], "shop", "orders", 3) is BY_QUALITY[best]


def test_server_0_is_any_server():
    """A row for server 0 counts on every server."""
    assert all(matches(ReplicationRow("shop", "orders", 0), server_id=number) for number in (1, 3, 2**32 - 1))


@pytest.mark.parametrize(("db", "table"), [("SHOP", "orders"), ("shop", "Orders"), ("Shop", "ORDERS")])
def test_another_case_is_still_exact(db: str, table: str):
    """Names match without regard to case, and weigh as much."""
    row = ReplicationRow(db, table)
    assert best_match([ReplicationRow("shop", "order_", 3), row], "shop", "orders", 3) is row


def test_two_cases_of_a_name_are_ambiguous():
    """Both are exact, so that neither is better."""
    rows = (ReplicationRow("shop", "orders"), ReplicationRow("SHOP", "Orders"))
    assert best_match(rows, "shop", "orders", 3) == AmbiguousMatch(rows)


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("%", "orders", True),
        ("%", "", True),
        ("ord%", "orders", True),
        ("ord%", "ord", True),
        ("ord%", "border", False),
        ("%ers", "orders", True),
        ("o%s", "orders", True),
        ("order_", "orders", True),
        ("order_", "order", False),
        ("order_", "orderss", False),
        ("o_d_r_", "orders", True),
        ("ORD%", "orders", True),
        ("a.b", "axb", False),
        ("a+", "aa", False),
        ("a%", "a\nb", True),
        (r"a\_b", "a_b", True),
        (r"a\_b", "axb", False),
        (r"a\%", "a%", True),
        (r"a\%", "abc", False),
        (r"a\\", "a\\", True),
        ("a\\", "a\\", True),
    ],
)
def test_wildcards(pattern: str, name: str, fits: bool):
    r"""% is any text, _ is any character, \ takes the next one as it is; all else stands for itself."""
    assert matches(ReplicationRow("shop", pattern), table=name) is fits
    assert matches(ReplicationRow(pattern, "orders"), database=name) is fits


def test_ambiguous():
    """Two rows of the same best quality: none of them counts, whatever lies below."""
    equal = (ReplicationRow("shop", "o%"), ReplicationRow("shop", "%s"))
    worse = ReplicationRow("%", "%")
    assert best_match([*equal, worse], "shop", "orders", 3) == AmbiguousMatch(equal)


def test_a_better_row_settles_an_ambiguity():
    """Only the best quality has to be unique."""
    best = ReplicationRow("shop", "o%", 3)
    assert best_match([ReplicationRow("shop", "o%"), ReplicationRow("shop", "%s"), best], "shop", "orders", 3) is best
