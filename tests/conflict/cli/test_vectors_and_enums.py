"""VECTOR in NDB, which is no blob there, and ENUM, whose first member is its default: recorded clusters and logs."""

import json
import re
from pathlib import Path

import pytest

from conflict import check
from conflict.cli.refusals import ExitCode
from tests.conflict.cli.commands import invoke
from tests.corpora import RECORDINGS

VECTOR, ENUM = RECORDINGS / "vector", RECORDINGS / "enum"
# Bytes of updates and deletes, as MySQL NDB Cluster 9.7.2 logged the same statements under each type.
UPDATES = {"2": 114, "3": 926, "6": 134, "7": 1758, "8": 118, "9": 930}
DELETES = {"2": 53, "3": 463, "6": 53, "7": 463, "8": 53, "9": 463}


def formats_of(log: Path, folder: Path, *options: object) -> dict[str, dict[str, dict[str, tuple[int, int, bool]]]]:
    """Return by kind of change and format, the least and the most bytes, and whether it can be more."""
    code, _ = invoke("sizes", log, *options, "--json", folder / "sizes.json", "--force")
    assert code in (ExitCode.DONE, ExitCode.WARNED)
    (table,) = json.loads((folder / "sizes.json").read_text())["tables"]
    return {
        kind: {
            name: (each["least"]["bytes"], each["most"]["bytes"], bool(each["rows_lacking_values"]))
            for name, each in changes["formats"].items()
        }
        for kind, changes in table["changes"].items()
    }


@pytest.mark.parametrize("logged", ["2", "6", "7", "8", "9"])  # type 3 logs updates as inserts
def test_sizes_of_a_table_with_a_vector(logged: str, tmp_path: Path):
    """From the log of any type, what each other type took is within the range, or not below the least."""
    found = formats_of(VECTOR / "sizes" / f"type{logged}.binlog", tmp_path, "--schema", VECTOR / "sizes" / "schema.sql")
    for kind, recorded in (("update", UPDATES), ("delete", DELETES)):
        for name, size in recorded.items():
            if name == "3" and kind == "update":
                continue  # an update of all columns, as a write
            least, most, lacking = found[kind][name]
            assert least <= size
            assert lacking or size <= most


@pytest.mark.parametrize(("logged", "lower"), [("6", "FULL NOBLOB 3 7 9"), ("7", "")])
def test_what_a_log_lacks_is_said(logged: str, lower: str):
    """Type 6 lacks the vector that an update did not set, and what a delete had, although the bytes are as many."""
    log, schema = VECTOR / "sizes" / f"type{logged}.binlog", VECTOR / "sizes" / "schema.sql"
    _, output = invoke("sizes", log, "--schema", schema)
    found = re.findall(r"(?:type )?(FULL|MINIMAL|NOBLOB|\d) 889 (≥?)[\d,-]+ ≥?\d+ ≥?[\d,-]+ ", output)
    assert [name for name, more in found[:9] if more] == lower.split()


def test_a_function_by_epoch_judges_a_table_with_a_vector(tmp_path: Path):
    """As two clusters of MySQL NDB Cluster 9.7.2 did: one conflict, one refresh, and equal rows."""
    run = VECTOR / "epoch" / "run.toml"
    assert "NDB-E004" not in {finding.code for finding in check(run).findings}
    code, output = invoke("resolve", run, "--out", tmp_path / "out")
    assert code == ExitCode.DONE
    assert "5 row changes, 1 conflict; the clusters converged." in output
    assert "All 6 row changes by appliers in the binlogs agree." in output


def test_an_enum_that_an_insert_leaves_out(tmp_path: Path):
    """Of a full log, the least under MINIMAL is what the server logged; of a minimal one, the rest is known."""
    assert formats_of(ENUM / "full.binlog", tmp_path)["insert"]["MINIMAL"] == (84, 90, False)
    minimal = formats_of(ENUM / "minimal.binlog", tmp_path)["insert"]
    assert (minimal["MINIMAL"], minimal["FULL"]) == ((84, 84, False), (90, 90, False))
