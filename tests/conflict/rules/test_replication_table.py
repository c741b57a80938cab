"""mysql.ndb_replication: which row applies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.rules.replication_table import AmbiguousMatch, ReplicationRow, best_match
from tests.examples import examples


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


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("CAFÉ", "cafe"), ("caf_", "CAFÉ"), ("%É", "cafe"), ("straSe", "straße"), ("ö%", "OH")],
)
def test_accents(pattern: str, name: str):
    """Names compare by utf8mb3_general_ci, to which an accent is nothing."""
    assert matches(ReplicationRow("shop", pattern), table=name)


def test_an_accent_is_still_exact():
    """A row that names the table in other letters that compare equal is an exact match, better than a pattern."""
    exact, pattern = ReplicationRow("shop", "CAFÉ"), ReplicationRow("shop", "caf%")
    assert best_match([pattern, exact], "shop", "cafe", 1) is exact


def test_an_escaped_name_is_a_pattern():
    """A backslash makes it one, although it fits one name alone; so it is worse than the name itself."""
    escaped, exact = ReplicationRow("shop", r"a\_b"), ReplicationRow("shop", "a_b")
    assert best_match([escaped, exact], "shop", "a_b", 1) is exact
    assert best_match([escaped, ReplicationRow("shop", "a%", 1)], "shop", "a_b", 1) == ReplicationRow("shop", "a%", 1)


def test_the_warning_names_the_candidates():
    """As recorded."""
    rows = (ReplicationRow("cft", "t%"), ReplicationRow("cft", "t_"))
    match = best_match(rows, "cft", "t1", 1)
    assert isinstance(match, AmbiguousMatch)
    assert match.warning("cft", "t1", 1) == (
        "Ambiguous matches in mysql.ndb_replication for cft.t1 (1).Candidates : cft.t% (0), cft.t_ (0)."
    )


def like(pattern: str, name: str) -> bool:
    """LIKE by recursion on the first character of the pattern."""
    if not pattern:
        return not name
    if pattern[0] == "%":
        return any(like(pattern[1:], name[applied:]) for applied in range(len(name) + 1))
    if pattern[0] == "_":
        return name != "" and like(pattern[1:], name[1:])
    if pattern[0] == "\\" and len(pattern) > 1:
        pattern = pattern[1:]
    return name[:1].lower() == pattern[0].lower() and like(pattern[1:], name[1:])


NAMES = st.text("abAB_%\\", min_size=1, max_size=6)
ROWS = st.lists(
    st.builds(
        ReplicationRow,
        st.one_of(st.sampled_from(["%", "a%", "_b"]), NAMES),
        st.one_of(st.sampled_from(["%", "a%", "_b"]), NAMES),
        st.integers(0, 2),
    ),
    max_size=6,
    unique=True,
)


@examples(125, long=500)
@given(pattern=NAMES, name=NAMES)
def test_wildcards_fit_as_like_says(pattern: str, name: str):
    """Against LIKE written down as it is defined."""
    assert matches(ReplicationRow("shop", pattern), table=name) is (
        like(pattern, name) or pattern.lower() == name.lower()
    )


def test_many_wildcards_take_no_time():
    """The time for a pattern is bounded by its length times the name's."""
    assert not matches(ReplicationRow("shop", "%a" * 31 + "%b"), table="a" * 63)


@examples(75, long=300)
@given(rows=ROWS, database=NAMES, table=NAMES, server=st.integers(1, 2), data=st.data())
def test_laws_of_the_best_match(
    rows: list[ReplicationRow], database: str, table: str, server: int, data: st.DataObject
):
    """The order of rows does not count, nor do rows that do not fit; a row of all three names wins over all."""
    found = best_match(rows, database, table, server)
    shuffled = best_match(data.draw(st.permutations(rows)), database, table, server)
    if isinstance(found, AmbiguousMatch):
        assert isinstance(shuffled, AmbiguousMatch)
        assert len(found.rows) > 1
        assert set(found.rows) == set(shuffled.rows)
    else:
        assert shuffled == found
    fitting = [row for row in rows if best_match([row], database, table, server) is not None]
    assert best_match(fitting, database, table, server) == found
    assert (found is None) is (not fitting)
    if isinstance(found, ReplicationRow):
        assert found in fitting
        # Without it, what is left is no better: putting it back brings it back.
        assert best_match([*(row for row in rows if row is not found), found], database, table, server) == found
    exact = ReplicationRow(database, table, server)
    others = [row for row in rows if (row.db.lower(), row.table_name.lower()) != (database.lower(), table.lower())]
    assert best_match([*others, exact], database, table, server) is exact
