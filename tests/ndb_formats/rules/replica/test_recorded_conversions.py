"""
Which column types an applier converts, held against a MySQL 9.7 server.

The recording has every pair of 90 types, each replayed with four values of `replica_type_conversions`, by an insert
with a full image and by an update with a minimal one (`tests/mysql_server/replayed_conversions.py`).
"""

import json

import attrs
import pytest

from ndb_formats.findings import ReplicaSeverity
from ndb_formats.rules.images import Logging
from ndb_formats.rules.replica.check import ReplicaSettings, check_table
from ndb_formats.rules.replica.conversions import conversion, is_allowed, parse_type_conversions
from ndb_formats.rules.row_image_rules import RowImageRule
from ndb_formats.schema.create_table import parse_schema
from tests.corpora import RECORDINGS

RECORDED = json.loads((RECORDINGS / "definitions" / "conversions.json").read_text("utf-8"))
TYPES = RECORDED["types"]
SETTINGS = ("", "ALL_NON_LOSSY", "ALL_LOSSY", "ALL_LOSSY,ALL_NON_LOSSY")
TABLES = parse_schema(
    "".join(f"CREATE TABLE d.t{place:02} (k INT PRIMARY KEY, c {kind});" for place, kind in enumerate(TYPES))
).tables
STOPS = {"020", "021"}


@pytest.mark.parametrize("bit", range(len(SETTINGS)), ids=["none", *SETTINGS[1:]])
def test_every_pair_of_types(bit: int):
    """The applier goes on with the value exactly where it is said to."""
    allowed = parse_type_conversions(SETTINGS[bit])
    wrong = [
        (TYPES[source], TYPES[replica])
        for source, row in enumerate(RECORDED["goes_on"])
        for replica, digit in enumerate(row)
        if is_allowed(conversion(TABLES[source].columns[1], TABLES[replica].columns[1]), allowed)
        is not bool(int(digit, 16) >> bit & 1)
    ]
    assert wrong == []


@pytest.mark.parametrize("image", [RowImageRule.MINIMAL, pytest.param(RowImageRule.FULL, marks=pytest.mark.slow)])
def test_what_is_guaranteed_does_not_stop(image: RowImageRule):
    """Where the check of two tables finds no error, the server goes on; where it says that it stops, it stops."""
    for bit in range(len(SETTINGS)):
        settings = ReplicaSettings(Logging(row_image=image), parse_type_conversions(SETTINGS[bit]))
        for source, row in enumerate(RECORDED["goes_on"]):
            for replica, digit in enumerate(row):
                other = attrs.evolve(TABLES[replica], name=TABLES[source].name)
                found = check_table(TABLES[source], other, settings)
                goes_on = bool(int(digit, 16) >> bit & 1)
                if not any(each.severity is ReplicaSeverity.ERROR for each in found):
                    assert goes_on, (TYPES[source], TYPES[replica])
                assert any(each.code[-3:] in STOPS for each in found) is not goes_on, (TYPES[source], TYPES[replica])
