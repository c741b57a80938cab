"""Row changes to the parts of a grid."""

import zlib
from typing import Any

import pytest

from conflict.history.epochs import BinlogEpoch
from conflict.history.grid.columns import digest_of
from conflict.history.grid.schemas import IMAGES
from conflict.history.grid.writer import PartBuilder, bucket_of, identity_of
from conflict.history.run import TableNumbers
from conflict.history.shown_effects import Effect, effect_of
from conflict.history.timeline import Origin, RowChange, Transaction
from ndb_formats.cursor import Cursor
from ndb_formats.events.row_image import RowImage, take_image
from ndb_formats.events.rows_event import ConflictFlag, Operation
from ndb_formats.schema.create_table import parse_schema
from tests.conflict.histories import TABLES, change, image, key, layouts

NUMBERS = TableNumbers(parse_schema(TABLES, database="d").tables, {"d.t": "x"})


class TestBucketOf:
    """Which bucket a row is in."""

    @pytest.mark.parametrize(
        ("identity", "buckets", "expected"),
        [
            (b"123456789", 2**32, 0xCBF43926),
            (b"123456789", 1000, 262),
            (b"123456789", 16, 6),
            (b"a", 16, 3),
            (b"", 16, 0),
            (b"anything", 1, 0),
        ],
    )
    def test_stable(self, identity: bytes, buckets: int, expected: int):
        """It is the CRC-32 of the identity, in every process and version."""
        assert bucket_of(identity, buckets) == expected

    def test_identity(self):
        """A row is known by the number of its table, in two bytes, and its key."""
        assert identity_of(258, b"key") == b"\x02\x01key"
        assert identity_of(1, key(5)) == bytes.fromhex("0100 01 04000000 05000000")


@pytest.mark.parametrize(
    ("text", "flags", "effect"),
    [
        ("i1=5", 0, Effect.CHANGED),
        ("u1=5", 0, Effect.CHANGED),
        ("d1", 0, Effect.DELETED),
        ("i1=5", 1, Effect.CHANGED),
        ("i1=5", 2, Effect.REFRESHED),
        ("d1", 2, Effect.REFRESHED_ABSENT),
    ],
)
def test_effect_of(text: str, flags: int, effect: Effect):
    """The effect of a consequence: a refresh by its flag, a delete by its operation."""
    plain = change(text)
    logged = RowChange(plain.table, plain.key, plain.operation, plain.before, plain.after, flags=ConflictFlag(flags))
    assert effect_of(logged) is effect


def built(*changes: RowChange, numbers: TableNumbers = NUMBERS) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return rows of changes and images in the one bucket of a grid, all in group 2 of epoch 2^64 - 1."""
    builder = PartBuilder(numbers, 1, ["f0", "f1"])
    for ordinal, each in enumerate(changes):
        builder.add_change(each, 2**64 - 1, 2, ordinal)
    ((changes, consequences),) = builder.tables()
    assert len(consequences) == 0
    return changes.drop_columns(IMAGES.names).to_pylist(), changes.select(IMAGES.names).to_pylist()


class TestResolveColumn:
    """The resolve column among the narrow columns."""

    @pytest.mark.parametrize(
        ("text", "before", "after"),
        [
            ("i1=5", (b"", 0), (b"\x03", 5)),
            ("i1=0", (b"", 0), (b"\x03", 0)),
            ("i1=N", (b"", 0), (b"\x03", 0)),
            ("i1", (b"", 0), (b"\x01", 0)),
            (f"i1={2**64 - 1}", (b"", 0), (b"\x03", 2**64 - 1)),
            (f"u1={2**63}>9", (b"\x03", 2**63), (b"\x03", 9)),
            ("u1=9", (b"\x01", 0), (b"\x03", 9)),
            ("u1=N>9", (b"\x03", 0), (b"\x03", 9)),
            ("u1=/3", (b"\x01", 0), (b"\x05", 0)),
            ("d1=7", (b"\x03", 7), (b"", 0)),
            ("d1", (b"\x01", 0), (b"", 0)),
        ],
    )
    def test_values(self, text: str, before: tuple[bytes, int], after: tuple[bytes, int]):
        """Absent, NULL (which counts as 0) and a value are three things; no image has no column."""
        ((row,), _) = built(change(text))
        assert (row["before_columns"], row["before_value"]) == before
        assert (row["after_columns"], row["after_value"]) == after

    def test_before_images_that_tell_more_than_the_key(self):
        """Those have a digest; an image of the key alone, and no image, have none."""
        digests = [built(change(text))[0][0]["before_digest"] for text in ("u1=7>9", "u1=9", "i1=5", "d1")]
        (before,) = [change("i1=7").after]
        assert before is not None
        assert digests == [digest_of(before), 0, 0, 0]

    def test_a_table_without_a_resolve_column(self):
        """Nothing is compared, so nothing is kept."""
        ((row,), _) = built(change("un1=5>6"))
        assert (row["before_value"], row["after_value"]) == (0, 0)

    def test_a_resolve_column_that_does_not_exist(self):
        """A refused function compares nothing either."""
        ((row,), _) = built(change("i1=5"), numbers=TableNumbers(NUMBERS.tables, {"d.t": "nosuch"}))
        assert (row["after_columns"], row["after_value"]) == (b"\x03", 0)


class TestRows:
    """Narrow columns and images."""

    def test_narrow_columns(self):
        """Everything that decides, and where it came from."""
        plain = change("r3=5")
        logged = RowChange(
            "d.t",
            plain.key,
            plain.operation,
            plain.before,
            plain.after,
            2**63,
            plain.flags,
            Origin("f1", 2**40, 2**32 - 1, 7),
        )
        ((row,), _) = built(logged)
        assert row == {
            "identity": bytes.fromhex("0000 01 04000000 03000000"),
            "table": 0,
            "operation": 2,
            "flags": 4,
            "epoch": 2**64 - 1,
            "group": 2,
            "ordinal": 0,
            "before_columns": b"\x01",
            "before_value": 0,
            "before_digest": 0,
            "after_columns": b"\x03",
            "after_value": 5,
            "after_digest": 0,  # a read writes no values
            "transaction_id": 2**63,
            "file": 1,
            "position": 2**40,
            "payload_position": 2**32 - 1,
            "row": 7,
        }

    def test_without_origin(self):
        """What was made up has no file, and no transaction id."""
        ((row,), _) = built(change("in3"))
        assert (row["table"], row["transaction_id"], row["file"], row["position"], row["row"]) == (1, None, -1, 0, 0)

    def test_image_bytes(self):
        """A bitmap of the columns that are there, and the bytes of a row event: null bits, then values."""
        (narrow,), (row,) = built(change("u1=5/N>6"))
        assert (narrow["before_columns"], narrow["after_columns"]) == (b"\x07", b"\x03")
        # Null bits beyond the columns that are there mean nothing.
        assert (row["before"][0] & 0b111, row["after"][0] & 0b11) == (0b100, 0b00)
        assert row["before"][1:] == bytes.fromhex("01000000 0500000000000000")
        assert row["after"][1:] == bytes.fromhex("01000000 0600000000000000")

    def test_no_image(self):
        """An operation without an image keeps none."""
        narrow, (inserted, deleted) = built(change("i1"), change("d1"))
        assert (narrow[0]["before_columns"], inserted["before"]) == (b"", None)
        assert (narrow[1]["after_columns"], deleted["after"]) == (b"", None)
        assert inserted["after"][1:] == deleted["before"][1:] == bytes.fromhex("01000000")

    @pytest.mark.parametrize(
        "values", [{0: 1}, {0: 1, 1: 2**64 - 1}, {0: 1, 1: None, 2: None}, {0: 0, 2: 0}, {1: 5}, {}]
    )
    def test_images_come_back(self, values: dict[int, int | None]):
        """Absent columns, NULLs and values survive."""
        written = image("t", values)
        (narrow,), (row,) = built(RowChange("d.t", key(1), Operation.WRITE_ROW, None, written))
        present = tuple(place for place in range(3) if narrow["after_columns"][0] >> place & 1)
        read = take_image(Cursor(row["after"]), layouts()["d.t"], present)
        assert isinstance(read, RowImage)
        assert read == written


class TestEpochs:
    """Whole epochs, bucket by bucket."""

    def test_buckets(self):
        """Each row is in the bucket of its identity; numbers count over all buckets of the epoch."""
        numbers = {key(number): bucket_of(identity_of(0, key(number)), 4) for number in range(1, 9)}
        changes = tuple(change(f"i{number}={number}") for number in range(1, 9))
        builder = PartBuilder(NUMBERS, 4, [])
        builder.add(BinlogEpoch(5, (Transaction(5, 0, changes[:3]), Transaction(5, 1, changes[3:])), (), ()))
        found = {}
        for bucket, (narrow, _) in enumerate(builder.tables()):
            for row in narrow.to_pylist():
                found[row["ordinal"]] = (bucket, row["group"], row["after_value"])
        assert found == {number - 1: (numbers[key(number)], 0 if number <= 3 else 1, number) for number in range(1, 9)}

    def test_consequences(self):
        """What the applier did is kept as an effect, apart from the changes."""
        refreshed = change("i2=5")
        refresh = RowChange(
            "d.t", refreshed.key, Operation.WRITE_ROW, None, refreshed.after, flags=ConflictFlag.REFRESH
        )
        builder = PartBuilder(NUMBERS, 1, [])
        builder.add(BinlogEpoch(5, (), (), ((0, change("dn1")), (3, refresh))))
        ((changes, consequences),) = builder.tables()
        assert len(changes) == 0
        image = bytes.fromhex("00 02000000 0500000000000000")
        digest = zlib.crc32(b"\x03") << 32 | zlib.crc32(image)
        assert consequences.to_pylist() == [
            {"identity": identity_of(1, key(1)), "table": 1, "epoch": 5, "group": 0, "effect": 2}
            | {"flags": 0, "after_digest": 0},
            {"identity": identity_of(0, key(2)), "table": 0, "epoch": 5, "group": 3, "effect": 3}
            | {"flags": ConflictFlag.REFRESH, "after_digest": digest},
        ]

    def test_nothing(self):
        """A segment without rows has buckets without rows."""
        builder = PartBuilder(NUMBERS, 4, [])
        builder.add(BinlogEpoch(5, (), (), ()))
        assert [len(table) for tables in builder.tables() for table in tables] == [0] * 8
