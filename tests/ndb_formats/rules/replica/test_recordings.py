"""
What MySQL 9.7.4 did with row events for tables that are defined otherwise, against the findings.

Each outcome was recorded: the row events of a source table, applied by BINLOG statements to a replica table.
"""

import json
from itertools import product
from typing import Any

import pytest

from ndb_formats.findings import Finding, ReplicaEffect, ReplicaSeverity
from ndb_formats.rules.images import Logging
from ndb_formats.rules.replica.check import ReplicaSettings, check_replica, check_table
from ndb_formats.rules.replica.conversions import is_integer, parse_type_conversions
from ndb_formats.rules.row_image_rules import RowImageRule
from ndb_formats.schema.create_table import parse_create_table, parse_schema
from tests.corpora import RECORDINGS

TYPES = json.loads((RECORDINGS / "replica" / "types.json").read_text("utf-8"))
TABLES = json.loads((RECORDINGS / "replica" / "tables.json").read_text("utf-8"))["cases"]
# By hand: what is to be found. The outcomes are the server's (`tests/mysql_server/check_unique_keys.py`).
UNIQUE_KEYS = json.loads((RECORDINGS / "replica" / "unique_keys.json").read_text("utf-8"))["cases"]
# Pairs that are not listed stopped the applier under every setting.
OUTCOMES = {(source, replica): outcomes for source, replica, outcomes in TYPES["pairs"]}
ROWS_OF = {text: parse_create_table(f"CREATE TABLE t (k INT PRIMARY KEY, c {text})") for text in TYPES["types"]}
# Different rows of the source that a statement of the case happens not to make, or keys that the manual demands.
MORE_THAN_RECORDED = {"replica_other_key", "replica_no_key", "replica_longer_key", "key_with_extra"}


def stops(findings: tuple[Finding, ...]) -> bool:
    """Return whether the applier is said to stop."""
    return any(finding.rule.effect is ReplicaEffect.STOPS for finding in findings)


@pytest.mark.parametrize("source", TYPES["types"])
def test_types(source: str):
    """The applier stops exactly where a finding says so, and values change nowhere without a finding."""
    for replica, setting in product(TYPES["types"], TYPES["settings"] + TYPES["integer_settings"]):
        if setting in TYPES["integer_settings"] and not all(
            is_integer(ROWS_OF[each].columns[1]) for each in (source, replica)
        ):
            continue  # recorded for integers alone
        recorded = OUTCOMES.get((source, replica), {}).get(setting, "stops")
        settings = ReplicaSettings(conversions=parse_type_conversions(setting))
        findings = check_table(ROWS_OF[source], ROWS_OF[replica], settings)
        if (source, replica) == ("GEOMETRY", "POINT"):
            continue  # the value was a point; `test_recorded_values.py` has others
        assert stops(findings) == (recorded == "stops"), (replica, setting)
        if recorded == "differs":
            assert any(finding.rule.effect is not ReplicaEffect.NOTHING for finding in findings), (replica, setting)


@pytest.mark.parametrize(
    ("case", "image"), [(case, image) for case in TABLES for image in RowImageRule], ids=lambda each: str(each)[:30]
)
def test_tables(case: dict[str, Any], image: RowImageRule):
    """Where the applier stopped or rows differ there is an error, and elsewhere none, but for keys."""
    recorded = case["outcomes"][image.name]
    source = parse_schema(f"CREATE TABLE t ({case['source']})")
    replica = parse_schema("" if case["replica"] is None else f"CREATE TABLE t ({case['replica']})")
    findings = check_replica(source, replica, ReplicaSettings(Logging(row_image=image)))
    errors = [finding.code for finding in findings if finding.severity is ReplicaSeverity.ERROR]
    if case["name"] not in MORE_THAN_RECORDED:
        assert bool(errors) == (recorded != "same"), errors
        assert stops(findings) == recorded.isdecimal()
    else:
        assert recorded == "same"
        assert {*errors} <= {"NDB-R040", "NDB-R041", "NDB-R044"}


@pytest.mark.parametrize("case", UNIQUE_KEYS, ids=[case["name"] for case in UNIQUE_KEYS])
def test_unique_keys(case: dict[str, Any]):
    """What is unique on the source is unique on the replica, or a finding says that the applier stops with 1062."""
    tables = [parse_create_table(f"CREATE TABLE t ({case[side]})") for side in ("source", "replica")]
    conversions = parse_type_conversions("ALL_LOSSY,ALL_NON_LOSSY")
    findings = check_table(tables[0], tables[1], ReplicaSettings(conversions=conversions))
    assert sorted(finding.code.removeprefix("NDB-") for finding in findings) == sorted(case["findings"])
    assert stops(findings) == (case["outcome"] == "1062")
