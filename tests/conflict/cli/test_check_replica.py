"""`ndb-conflict check-replica`: recordings with tables defined otherwise on B, and the command's answers."""

import json
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from conflict.cli.refusals import ExitCode
from conflict.judge.case import ConflictCase
from tests.conflict.cli.commands import invoke
from tests.corpora import RECORDINGS, SHARED

BUNDLED = RECORDINGS / "replica"
CANNOT_CONVERT = re.compile(r"Column (\d+) \(counting.*?of table '(.*?)' cannot be converted from type '(.*?)' to")
# What each recording shows: the side whose applier stopped, and the finding that says why; None if none stopped.
STOPPED = {
    "extra_column": None,
    "other_order": ("NDB-R021", "v"),
    "wider_column": ("NDB-R020", "v"),
}


@attrs.frozen
class Checked:
    """The answer for one direction of a recording, and what its applier met."""

    code: int
    findings: list[dict[str, Any]]
    stopped: str | None

    def of_effect(self, effect: str) -> list[dict[str, Any]]:
        """Return the findings with an effect."""
        return [finding for finding in self.findings if finding["effect"] == effect]


def checked(case: Path, applier: str, folder: Path) -> Checked:
    """Check the tables of a recording from the other side to an applier; `stopped` is the server's message."""
    recorded = ConflictCase.load(case)
    other = {"A": "B", "B": "A"}[applier]
    database = recorded.scenario["database"]
    for side in (applier, other):
        texts = [
            table.get("create_B", table["create"]) if side == "B" else table["create"] for table in tables(recorded)
        ]
        (folder / f"{side}.sql").write_text(";\n".join([f"USE {database}", *texts]))
    (binlog_type,) = {row["binlog_type"] for row in recorded.scenario["ndb_replication"]}
    conversions = recorded.scenario["globals"][applier]["replica_type_conversions"]
    code, _ = invoke(
        *("check-replica", folder / f"{other}.sql", folder / f"{applier}.sql", "--binlog-type", binlog_type),
        *("--type-conversions", conversions, "--json", folder / "found.json", "--force"),
    )
    side = recorded.expected[applier]
    lines = [line for line in side["error_log"] if "[ERROR]" in line] if not side["applier"]["running"] else [None]
    return Checked(code, json.loads((folder / "found.json").read_text())["findings"], lines[0])


def tables(case: ConflictCase) -> list[dict[str, Any]]:
    """Return the tables of a recording."""
    return list(case.scenario["tables"])


def has_changes(case: Path, side: str) -> bool:
    """Return whether a side changed rows of its own, so that something arrived on the other."""
    return any(step.get("on") == side for step in ConflictCase.load(case).steps)


def assert_stop_is_found(case: Path, folder: Path) -> None:
    """Check that the findings name the column that stopped an applier, and that no other applier is said to stop."""
    for applier, other in (("A", "B"), ("B", "A")):
        if not has_changes(case, other):
            continue
        answer = checked(case, applier, folder)
        stops = answer.of_effect("the applier stops")
        if answer.stopped is None:
            assert stops == []
            assert answer.code in (ExitCode.DONE, ExitCode.WARNED)
            continue
        message = CANNOT_CONVERT.search(answer.stopped)
        assert message, answer.stopped
        assert answer.code == ExitCode.REFUSED
        place, table, source_type = message.groups()
        assert stops[0]["table"] == table
        assert re.search(rf"13146: column {place}\b.* from {re.escape(source_type)}\b", stops[0]["reason"])


@pytest.mark.parametrize("function", ["max", "epoch2"])
@pytest.mark.parametrize("kind", STOPPED)
def test_it_says_what_stopped_the_applier(function: str, kind: str, tmp_path: Path):
    """The column and the type of the server's message 13146 are those of a finding; other appliers ran."""
    case = BUNDLED / function / f"schema_{kind}_type7"
    assert_stop_is_found(case, tmp_path)
    answer = checked(case, "B", tmp_path)
    first = next(iter(answer.of_effect("the applier stops")), None)
    assert STOPPED[kind] == (first and (first["code"], first["column"]))


@pytest.mark.slow
@pytest.mark.corpus("conformance/everyday")
def test_it_says_what_stopped_the_applier_in_every_recording(tmp_path: Path):
    """Of all recordings in which a table is defined otherwise on B."""
    scenarios = (SHARED / "conformance" / "everyday").rglob("scenario.json")
    cases = [file.parent for file in scenarios if '"create_B"' in file.read_text("utf-8")]
    assert cases
    for case in cases:
        assert_stop_is_found(case, tmp_path)


def write(folder: Path, source: str, replica: str) -> tuple[Path, Path]:
    """Write both schemas; return their paths."""
    files = folder / "source.sql", folder / "replica.sql"
    for file, text in zip(files, (source, replica), strict=True):
        file.write_text(text)
    return files


SAME = "CREATE TABLE d.t (k INT PRIMARY KEY, a INT DEFAULT 1)"
OTHER_DEFAULT = SAME.replace("1)", "2)")


def test_the_exit_code_is_that_of_the_worst_finding(tmp_path: Path):
    """0 for equal tables and for notes, 4 for warnings, 1 for errors, 2 for what stops the applier at once."""
    assert invoke("check-replica", *write(tmp_path, SAME, SAME))[0] == ExitCode.DONE
    assert invoke("check-replica", *write(tmp_path, SAME, OTHER_DEFAULT))[0] == ExitCode.DONE
    assert invoke("check-replica", *write(tmp_path, SAME, SAME.replace(" a ", " b ")))[0] == ExitCode.WARNED
    assert invoke("check-replica", *write(tmp_path, SAME, "CREATE TABLE u (k INT)"))[0] == ExitCode.REFUSED


def test_the_setting_counts_that_rules_the_table(tmp_path: Path):
    """Without ENGINE the one that is given; with it, the one of that engine."""
    files = write(tmp_path, SAME, OTHER_DEFAULT)
    assert invoke("check-replica", *files, "--row-image", "minimal")[0] == ExitCode.CONTRADICTED
    assert invoke("check-replica", *files, "--binlog-type", "8")[0] == ExitCode.DONE
    for engine, code in (("InnoDB", ExitCode.CONTRADICTED), ("NDB", ExitCode.DONE)):
        files = write(tmp_path, f"{SAME} ENGINE={engine}", f"{OTHER_DEFAULT} ENGINE={engine}")
        assert invoke("check-replica", *files, "--binlog-type", "8", "--row-image", "minimal")[0] == code


def test_the_output_has_reason_fix_and_condition(tmp_path: Path):
    """And a line for every table of the source."""
    _, output = invoke("check-replica", *write(tmp_path, SAME, SAME.replace("a INT", "a BIGINT")))
    assert "d.t not guaranteed 1 0 0 0" in output
    assert "refused NDB-R020 a conversion of types that is not allowed d.t (a)" in output
    assert "column 2 cannot be converted from int to bigint; this is a non-lossy conversion." in output
    assert "or set replica_type_conversions=ALL_NON_LOSSY on the replica." in output
    assert "(manual, replication-features-differing-tables)" in output
    assert "Of 1 table, not guaranteed: 1, with warnings: 0, guaranteed: 0." in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--row-image", "half"), "binlog_row_image 'half' is not known"),
        (("--binlog-type", "11"), "binlog_type '11' is not known"),
        (("--type-conversions", "some"), "replica_type_conversions 'some' is not known"),
    ],
)
def test_an_unknown_setting_is_refused(arguments: tuple[str, ...], message: str, tmp_path: Path):
    """The message lists what there is."""
    code, output = invoke("check-replica", *write(tmp_path, SAME, SAME), *arguments)
    assert (code, message in output) == (ExitCode.REFUSED, True)


def test_a_file_without_tables_is_refused(tmp_path: Path):
    """It is more likely a mistake than a schema; so is one that cannot be read."""
    code, output = invoke("check-replica", *write(tmp_path, SAME, "SELECT 1"))
    assert (code, "replica.sql: no CREATE TABLE statement" in output) == (ExitCode.REFUSED, True)
    code, output = invoke("check-replica", *write(tmp_path, SAME, "CREATE TABLE t (k INT"))
    assert (code, "replica.sql:" in output) == (ExitCode.REFUSED, True)


def test_no_input_is_overwritten(tmp_path: Path):
    """The JSON file is another file."""
    files = write(tmp_path, SAME, SAME)
    assert invoke("check-replica", *files, "--json", files[0])[0] == ExitCode.REFUSED
    assert files[0].read_text() == SAME
