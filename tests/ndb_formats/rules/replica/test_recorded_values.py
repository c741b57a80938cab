"""
Which border values an applier stores, held against a MySQL 9.7 server.

The recording has every pair of types of each family, each replayed with four values of `replica_type_conversions`, and
says where the replica's values are those of the source (`tests/mysql_server/replayed_values.py`).
"""

import json
import lzma

import pytest

from ndb_formats.findings import ReplicaEffect, ReplicaSeverity
from ndb_formats.rules.replica.check import ReplicaSettings, check_table
from ndb_formats.rules.replica.conversions import Conversion, conversion, parse_type_conversions
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Table
from tests.corpora import RECORDINGS

RECORDED = json.loads(lzma.decompress((RECORDINGS / "definitions" / "converted_values.json.xz").read_bytes()))
SETTINGS = ("", "ALL_NON_LOSSY", "ALL_LOSSY", "ALL_LOSSY,ALL_NON_LOSSY")


@pytest.mark.parametrize("family", RECORDED)
def test_every_pair_of_types(family: str):
    """The applier stops exactly where a finding says so, and where none does worse than note, values are equal."""
    recorded, tables = RECORDED[family], _tables(family)
    wrong = []
    for bit, setting in enumerate(SETTINGS):
        settings = ReplicaSettings(conversions=parse_type_conversions(setting))
        for source, row in enumerate(recorded["goes_on"]):
            for replica, digit in enumerate(row):
                found = check_table(tables[source], tables[replica], settings)
                goes_on = bool(int(digit, 16) >> bit & 1)
                stops = any(each.rule.effect is ReplicaEffect.STOPS for each in found)
                sure = all(each.severity is ReplicaSeverity.NOTE for each in found)
                if stops is goes_on or (sure and recorded["equal"][source][replica] != "1"):
                    wrong.append((recorded["types"][source][:40], recorded["types"][replica][:40], setting, found))
    assert wrong == []


@pytest.mark.parametrize("family", RECORDED)
def test_a_lossy_conversion_changes_a_value(family: str):
    """Between numbers with a point, a conversion counts as lossy whatever the sizes; others do change a value."""
    recorded, tables = RECORDED[family], _tables(family)
    equal = [
        (recorded["types"][source], recorded["types"][replica])
        for source, row in enumerate(recorded["equal"])
        for replica, digit in enumerate(row)
        if digit == "1"
        and conversion(tables[source].columns[1], tables[replica].columns[1]) is Conversion.LOSSY
        and not {tables[source].columns[1].type, tables[replica].columns[1].type} & {"float", "double"}
    ]
    assert [pair for pair in equal if not pair[0].startswith("LONG")] == []  # no value is longer than 16 MiB


def _tables(family: str) -> list[Table]:
    kinds = RECORDED[family]["types"]
    return [parse_schema(f"CREATE TABLE d.t (k INT PRIMARY KEY, c {kind}) CHARSET utf8mb4").tables[0] for kind in kinds]
