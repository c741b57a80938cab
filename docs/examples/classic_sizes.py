"""Print the sizes that a blog post gave for a pre-release MySQL 5.6.2: a delete, and an insert without a default."""

import io

from ndb_formats.events.table_map_of_table import RowMetadata
from ndb_formats.rules.images import Logging
from ndb_formats.rules.row_image_rules import RowImageRule
from ndb_formats.schema.create_table import parse_create_table
from ndb_formats.writing.binlog_writer import BinlogSettings, BinlogWriter, WrittenChange

COLUMNS = "c1 INT PRIMARY KEY, c2 CHAR(1), c3 "
TEXT, DEFAULT = (
    parse_create_table(f"CREATE TABLE test.t1 ({COLUMNS}{kind}) ENGINE=MYISAM CHARSET=latin1")
    for kind in ("LONGTEXT", f"VARCHAR(1024) DEFAULT '{'a' * 20}'")
)
CHANGES = {
    "DELETE of a row with a text of 1 MiB": WrittenChange(TEXT, {0: 1, 1: "a", 2: "a" * (1 << 20)}, None),
    "INSERT (c1, c2), c3 has a default": WrittenChange(DEFAULT, None, {0: 1, 1: "a", 2: "a" * 20}, {0, 1}),
}


def file_size(change: WrittenChange, row_image: RowImageRule) -> int:
    """Return the size of a file with one change, as such a server writes it."""
    settings = BinlogSettings(
        Logging(row_image=row_image),
        server_version="5.6.2",
        post_header_sizes=bytes(29),
        checksums=False,
        metadata=RowMetadata.NONE,
        rows_version=1,
        gtid_events=False,
        session=bytes(26),
    )
    writer = BinlogWriter(io.BytesIO(), settings)
    writer.start(0)
    writer.write_transaction([[change]], 0)
    return writer.position


for title, change in CHANGES.items():
    sizes = ", ".join(f"{rule.name} {file_size(change, rule)}" for rule in (RowImageRule.FULL, RowImageRule.MINIMAL))
    print(f"{title}: {sizes}")
