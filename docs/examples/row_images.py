"""Print the images of one update in every format, side by side."""

import attrs

from ndb_formats.events.row_image import RowImage, layout_of, put_image
from ndb_formats.events.table_map_of_table import table_map_of
from ndb_formats.rules.formats import FORMATS
from ndb_formats.rules.images import Logging, images
from ndb_formats.rules.row_image_rules import RowImageRule, primary_key_equivalent
from ndb_formats.schema.create_table import parse_create_table

TABLE = parse_create_table(
    "CREATE TABLE shop.item (id INT PRIMARY KEY, name VARCHAR(20), price INT, note TEXT) CHARACTER SET latin1"
)
BEFORE = {0: 7, 1: "mug", 2: 10, 3: "blue, " * 50}
AFTER = {**BEFORE, 2: 12}
SHOWN = {7: "7", "mug": "mug", 10: "10", 12: "12", BEFORE[3]: "..."}


def cells(image: RowImage | None) -> str:
    """Return the columns of an image, a dot for one that it does not carry."""
    values = {} if image is None else image.values()
    texts = [SHOWN[values[place]] if place in values else "." for place in range(len(TABLE.columns))]
    return "".join(text.ljust(width) for text, width in zip(texts, (5, 6, 7, 6), strict=True))


def main() -> None:
    """Print the table."""
    key = primary_key_equivalent(TABLE)
    names = [column.name + "*" * (place in key) for place, column in enumerate(TABLE.columns)]
    heading = "".join(name.ljust(width) for name, width in zip(names, (5, 6, 7, 6), strict=True))
    print(f"{'':10}{'before image':24}  {'after image':24}")
    print(f"{'':10}{heading}  {heading}  bytes")
    for form in FORMATS:
        row_image = isinstance(form.rule, RowImageRule)
        table = attrs.evolve(TABLE, engine="INNODB" if row_image else "NDB")
        logging = Logging(row_image=form.rule) if row_image else Logging(update_format=form.rule)
        (event,) = images(table, layout_of(table_map_of(table, 1), table), BEFORE, AFTER, {2}, logging)
        both = [image for image in (event.before, event.after) if image is not None]
        title = form.name if row_image else f"type {form.name}"
        print(
            f"{title:10}{cells(event.before)}  {cells(event.after)}  {sum(len(put_image(image)) for image in both):5}"
        )


if __name__ == "__main__":
    main()
