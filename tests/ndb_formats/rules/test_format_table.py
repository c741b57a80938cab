"""The table of formats in docs/formats.md."""

from pathlib import Path

import attrs

from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.row_image_rules import EventColumns, RowImageRule, image_columns
from ndb_formats.rules.update_format import BINLOG_TYPES, effective_format, ndb_columns
from ndb_formats.schema.create_table import parse_create_table

DOCS = Path(__file__).parents[3] / "docs" / "formats.md"
EXAMPLE = parse_create_table(
    "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(20), price DECIMAL(8,2), note TEXT) ENGINE=NDB"
)
INSERTED, UPDATED = ("id", "name"), ("price",)
STATEMENTS = (
    (Operation.WRITE_ROW, "INSERT INTO item (id, name)", INSERTED),
    (Operation.UPDATE_ROW, "UPDATE item SET price", UPDATED),
    (Operation.DELETE_ROW, "DELETE FROM item", ()),
)


def places(names: tuple[str, ...]) -> list[int]:
    """Return the positions of columns of the example."""
    return [EXAMPLE.ordinal(name) for name in names]


def cell(event: EventColumns | None) -> str:
    """Return what an event carries, as a cell of the table."""
    if event is None:
        return "nothing"
    parts = [
        f"{label} {', '.join(EXAMPLE.columns[place].name for place in places)}"
        for label, places in (("BI", event.before), ("AI", event.after))
        if places is not None
    ]
    return f"{event.operation.name}: {'; '.join(parts)}"


def format_table() -> str:
    """Return what each format logs of three statements on one small table, as a Markdown table."""
    head = ["format", *(f"`{statement}`" for _, statement, _ in STATEMENTS)]
    lines = [head, ["---"] * len(head)]
    for row in BINLOG_TYPES:
        if row.names:
            rule = effective_format(row.number)
            events = [ndb_columns(rule, EXAMPLE, kind, places(names)) for kind, _, names in STATEMENTS]
            lines.append([f"{row.number} {row.name}", *(cell(event) for event in events)])
    other = attrs.evolve(EXAMPLE, engine="INNODB")
    for image in RowImageRule:
        columns = [image_columns(image, other, kind, places(names)) for kind, _, names in STATEMENTS]
        lines.append([f"binlog_row_image={image.value}", *(cell(event) for event in columns)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def test_the_documentation_has_the_table_that_follows_from_the_rules() -> None:
    """Line by line."""
    assert format_table() in DOCS.read_text(encoding="utf-8")
