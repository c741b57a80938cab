"""What a finding tells to type, typed: the finding is gone, and nothing else is refused."""

import ast
import re
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from conflict.checking.check import check_configuration
from conflict.checking.findings import Severity
from conflict.config.arguments import DeploymentPolicy
from conflict.config.configuration import Configuration
from conflict.config.run_file import load_run_file
from conflict.rules.replication_table import ReplicationRow, Role
from ndb_formats.rules.update_format import switch
from tests.conflict.checking.test_planted import PLANTED, with_

Rows = tuple[ReplicationRow, ...]


def literals(text: str) -> list[tuple[object, ...]]:
    """Return rows of SQL values; NULL is None, and strings here have no quotes in them."""
    return list(ast.literal_eval(f"[{text.replace('NULL', 'None')}]"))


def key_of(row: ReplicationRow) -> tuple[object, ...]:
    """Return the primary key of a row."""
    return (row.db, row.table_name, row.server_id)


def update(match: re.Match[str], rows: Rows) -> Rows:
    """Set columns of the rows with the given keys."""
    keys = literals(match["keys"])
    assert keys
    assert {*keys} <= {key_of(row) for row in rows}
    values = {
        name: literals(f"({value},)")[0][0] for name, value in re.findall(r"(\w+) = ('[^']*'|NULL|\d+)", match["set"])
    }
    return tuple(attrs.evolve(row, **values) if key_of(row) in keys else row for row in rows)


def delete(match: re.Match[str], rows: Rows) -> Rows:
    """Delete the rows with the given keys."""
    keys = literals(match["keys"])
    assert {*keys} <= {key_of(row) for row in rows}
    return tuple(row for row in rows if key_of(row) not in keys)


def insert(match: re.Match[str], rows: Rows) -> Rows:
    """Add rows."""
    names = match["columns"].split(", ")
    added = [ReplicationRow(**dict(zip(names, values, strict=True))) for values in literals(match["rows"])]
    assert not {key_of(row) for row in added} & {key_of(row) for row in rows}
    return (*rows, *added)


STATEMENTS: dict[str, Callable[[re.Match[str], Rows], Rows]] = {
    r"UPDATE mysql\.ndb_replication SET (?P<set>.*) WHERE \(db, table_name, server_id\) IN \((?P<keys>.*?)\);": update,
    r"DELETE FROM mysql\.ndb_replication WHERE \(db, table_name, server_id\) IN \((?P<keys>.*?)\);": delete,
    r"INSERT INTO mysql\.ndb_replication \((?P<columns>.*?)\) VALUES (?P<rows>.*?);": insert,
}
SETTING = re.compile(
    r"set (?P<name>\w+) = (?P<value>\w+) under \[mysqld\] in the my\.cnf of (?P<clusters>[A-C, ]+)[,.]"
)
ROLE = re.compile(
    r".*SET PERSIST ndb_applier_conflict_role = '(?P<role>\w+)'; START REPLICA; on (?P<clusters>[A-C, ]+)\."
)


def typed(configuration: Configuration, fix: str) -> Configuration | None:
    """Return the configuration after a fix; None if that is nothing to type as it stands."""
    for pattern, apply in STATEMENTS.items():
        if match := re.match(pattern, fix):
            return attrs.evolve(configuration, replication=apply(match, configuration.replication))
    if match := SETTING.match(fix):
        changed = {"variables": {match["name"]: match["value"]}}
    elif match := ROLE.match(fix):
        changed = {"role": Role(match["role"])}
    else:
        return None
    clusters = []
    for cluster in configuration.clusters:
        values = dict(changed)
        if cluster.name not in match["clusters"].split(", "):
            values = {}
        elif "variables" in values:
            values["variables"] = {**(cluster.variables or {}), **values["variables"]}
            ids = switch("ndb_log_transaction_id", values["variables"]["ndb_log_transaction_id"])
            values["transaction_ids"] = ids
        clusters.append(attrs.evolve(cluster, **values))
    return attrs.evolve(configuration, clusters=tuple(clusters))


@pytest.mark.parametrize("name", PLANTED)
def test_a_fix_that_is_typed_leaves_nothing_of_its_finding(name: str, tmp_path: Path) -> None:
    """For every finding whose fix is a statement or a setting."""
    base, changes, _ = PLANTED[name]
    before = with_(base, **changes).report(tmp_path)
    configuration = load_run_file(tmp_path / "run.toml", binlogs=False).configuration
    for finding in before.findings:
        fixed = typed(configuration, str(finding.fix))
        if fixed is None:
            continue
        after = check_configuration(fixed, DeploymentPolicy.MANUAL)
        assert finding.code not in {each.code for each in after.findings}, str(finding.fix)
        refused = {each.code for each in before.of(Severity.REFUSED)}
        assert {each.code for each in after.of(Severity.REFUSED)} <= refused


def test_most_fixes_can_be_typed(tmp_path: Path) -> None:
    """So many codes of the planted faults have a fix that the test above types."""
    codes = set()
    for number, (base, changes, _) in enumerate(PLANTED.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        report = with_(base, **changes).report(folder)
        configuration = load_run_file(folder / "run.toml", binlogs=False).configuration
        codes |= {each.code for each in report.findings if typed(configuration, str(each.fix)) is not None}
    assert len(codes) >= 25
