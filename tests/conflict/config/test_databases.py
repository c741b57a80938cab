"""Definitions that name no database: where the tables stand."""

from conflict.config.schema_file import in_databases
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema

TABLES = """
CREATE TABLE orders (id INT PRIMARY KEY);
CREATE TABLE `orders$EX` (id INT PRIMARY KEY);
CREATE TABLE stock.orders (id BIGINT PRIMARY KEY);
CREATE TABLE idle (id INT PRIMARY KEY);
"""


def _placed(known: set[tuple[str, str]], text: str = TABLES) -> list[str]:
    return sorted(table.full_name for table in in_databases(parse_schema(text), known).tables)


def test_each_database_with_the_name_has_the_table():
    """A table stands in two databases; where the schema has a definition of that database's own, that one counts."""
    schema = in_databases(parse_schema(TABLES), {("shop", "orders"), ("stock", "orders"), ("old", "orders")})
    assert [(table.full_name, table.columns[0].type) for table in schema.tables if table.name == "orders"] == [
        ("old.orders", "int"),
        ("shop.orders", "int"),
        ("stock.orders", "bigint"),
    ]


def test_exceptions_tables_stand_where_their_tables_do():
    """No binlog has to name an exceptions table."""
    known = {("shop", "orders"), ("old", "other")}
    assert _placed(known) == [".idle", "shop.orders", "shop.orders$EX", "stock.orders"]


def test_the_only_database_has_all_tables():
    """Also those that nothing changes; with several databases, or none, they are left as they are."""
    text = "CREATE TABLE idle (id INT PRIMARY KEY);"
    assert _placed({("shop", "orders")}, text) == ["shop.idle"]
    assert _placed({("shop", "orders"), ("old", "orders")}, text) == [".idle"]
    assert _placed(set(), text) == [".idle"]


def test_a_schema_with_databases_stays_as_it_is():
    """Nothing is added to it."""
    schema = parse_schema("CREATE TABLE stock.orders (id INT PRIMARY KEY);")
    assert in_databases(schema, {("shop", "orders")}) is schema
    assert in_databases(Schema(), {("shop", "orders")}) == Schema()
