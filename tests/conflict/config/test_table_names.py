"""Names of tables with and without a database."""

import pytest

from conflict.config.option_values import full_name_of
from conflict.errors import ConfigurationError

KNOWN = ("shop.item", "shop.order", "old.order", "`a.b`.`c.d`", "item.x")


def test_a_database_may_be_left_out_where_one_alone_has_the_table() -> None:
    """A full name is itself; a table that is nowhere stays, for whoever looks for it."""
    assert full_name_of("item", KNOWN) == "shop.item"
    assert full_name_of("shop.order", KNOWN) == "shop.order"
    assert full_name_of("c.d", KNOWN) == "`a.b`.`c.d`"
    assert full_name_of("nowhere", KNOWN) == "nowhere"
    with pytest.raises(ConfigurationError, match=r"several databases: old\.order, shop\.order; give database\.table"):
        full_name_of("order", KNOWN)
