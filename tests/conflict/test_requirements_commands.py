"""`ndb-conflict requirements`, `check` and `resolve --policy`, on the bundled demo and on what is made of it."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conflict.cli.app import REFUSED, app
from conflict.compatibility.pairing import Policy
from conflict.compatibility.whole_run import check_run, refuse_by_policy
from conflict.config.run_file import load_run_file
from conflict.conformance.case import ConflictCase
from conflict.errors import ConfigurationError

RECORDINGS = Path(__file__).parents[1] / "recordings"
DEMO = RECORDINGS / "demo"
SCHEMA = DEMO / "schema.sql"


def run(*arguments: object) -> tuple[int, str]:
    """Run a command and return exit code and output, without the line ends that depend on a width."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return done.exit_code, " ".join(done.output.split())


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """Return a copy of the demo whose functions compare a column, under its type 9."""
    folder = tmp_path / "run"
    shutil.copytree(DEMO, folder)
    text = (folder / "run.toml").read_text().replace("NDB$EPOCH()", "NDB$MAX(x)")
    (folder / "run.toml").write_text(text)
    return folder / "run.toml"


class TestRequirements:
    """One answer, or a table of them."""

    def test_the_whole_table(self, tmp_path: Path):
        """All functions and types, each mark explained, and as a document."""
        file = tmp_path / "answers.json"
        code, output = run("requirements", "--json", file)
        assert code == 0
        assert "NDB$MAX_DEL_WIN_INS but but ok but but ok refused refused U? U? U? U?" in output
        assert "D!: a delete lacks the value to compare" in output
        assert "binlog_type 0 DEFAULT (by the server options as 2 UPDATED_ONLY)" in output
        document = json.loads(file.read_text())
        assert (document["policy"], len(document["answers"])) == ("manual", 9 * 8)

    def test_one_type_under_the_other_policy(self):
        """A type by its name; only the marks shown are explained."""
        code, output = run("requirements", "--binlog-type", "updated_only_minimal", "--policy", "needs")
        assert code == 0
        assert "NDB$MAX but U? D!" in output
        assert "W!" not in output

    def test_one_function(self):
        """All types of one function."""
        assert "NDB$EPOCH but but but ok ok ok ok ok" in run("requirements", "--function", "NDB$EPOCH(3)")[1]

    def test_one_answer(self, tmp_path: Path):
        """A table of a schema; verdict, reasons, what arrives, what would work."""
        file = tmp_path / "answer.json"
        arguments = ("--function", "NDB$OLD(x)", "--binlog-type", 9, "--schema", SCHEMA, "--table", "t2")
        code, output = run("requirements", *arguments, "--json", file)
        assert code == 0
        assert "on table cft.t2 (policy manual) is refused: The manual says" in output
        assert "Delete: DELETE_ROW with before image a, b, d, x, f, w; is judged." in output
        assert "What would work, the smallest change first: binlog_type = 7 FULL_USE_UPDATE" in output
        (answer,) = json.loads(file.read_text())["answers"]
        assert (answer["status"], answer["nearest"]) == ("refused", [["binlog_type = 7 FULL_USE_UPDATE"]])
        assert [(reason["concern"], reason["error"]) for reason in answer["reasons"]] == [
            ("POLICY", None),
            ("NO_UPDATE", 1296),
        ]
        assert answer["changes"][3]["before"] == ["a", "b", "d", "x", "f", "w"]

    def test_what_is_known_of_the_servers(self):
        """Role, transaction ids and options are asked for by name."""
        arguments = ("requirements", "--function", "NDB$EPOCH2_TRANS()", "--binlog-type", 0, "--role", "NONE")
        _, output = run(*arguments, "--no-transaction-ids", "--option", "ndb_log_update_as_write=OFF")
        assert "needs ndb_applier_conflict_role" in output
        assert "logs no transaction ids" in output
        assert "as 6 UPDATED_ONLY_USE_UPDATE" in output

    def test_nothing_mends_it(self, tmp_path: Path):
        """Where no setting helps, that is said."""
        schema = tmp_path / "schema.sql"
        schema.write_text("CREATE TABLE t (k INT PRIMARY KEY, x INT UNSIGNED, v INT UNIQUE);")
        output = run("requirements", "--function", "NDB$MAX(x)", "--binlog-type", 7, "--schema", schema)[1]
        assert "is usable, but: The unique key on v" in output
        assert "No other setting mends this." in output

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--function", "NDB$MOST(x)"], "unknown conflict resolution function"),
            (["--binlog-type", "11"], "binlog_type '11' is not known; there are 0 DEFAULT"),
            (["--table", "t1"], "give --schema, too"),
            (["--schema", SCHEMA, "--table", "t1"], "--schema needs --function"),
            (["--schema", SCHEMA, "--function", "NDB$MAX(x)"], "--table must name one of cft.t1, cft.t1$EX, cft.t2"),
            (["--option", "ndb_log_update_minimal=MAYBE"], "it can be ON or OFF"),
            (["--option", "ndb_log_updates=ON"], "ndb_log_updates is none of"),
        ],
    )
    def test_input_that_cannot_be_used(self, arguments: list[object], words: str):
        """It is refused in words, with exit code 2."""
        code, output = run("requirements", *arguments)
        assert code == REFUSED
        assert words in output


class TestCheck:
    """A whole run, from its run file."""

    def test_the_demo(self, tmp_path: Path):
        """Both clusters, all tables, exceptions tables; nothing is refused."""
        file = tmp_path / "check.json"
        code, output = run("check", DEMO / "run.toml", "--json", file)
        assert code == 0
        assert "A cft.t1 9 NDB$EPOCH(6) cft.t1$EX ok" in output
        assert "B cft.t1 9 none none ok" in output
        assert "Every conflict function can judge every change that arrives." in output
        tables = json.loads(file.read_text())["tables"]
        assert [(each["cluster"], each["table"], each["status"]) for each in tables] == [
            (cluster, f"cft.{table}", "ok") for cluster in "AB" for table in ("t1", "t2", "plain")
        ]

    def test_no_binlog_is_read(self, changed: Path):
        """A binlog that is none changes nothing."""
        for file in changed.parent.glob("*.binlog.*"):
            file.write_bytes(b"nothing")
        assert run("check", changed, "--policy", "needs")[0] == 0

    def test_a_refused_pair(self, changed: Path):
        """Exit code 2, why, and what would work; the other policy lets it pass."""
        code, output = run("check", changed)
        assert code == REFUSED
        assert "A cft.t1 9 NDB$MAX(x) cft.t1$EX refused" in output
        assert "A, cft.t1: The manual says that NDB$OLD and NDB$MAX do not work correctly" in output
        assert "What would work: binlog_type = 7 FULL_USE_UPDATE." in output
        assert "Refused: 2 of 6." in output
        assert "Only one of the clusters has the function" in output
        assert run("check", changed, "--policy", "needs")[0] == 0

    def test_limits(self, changed: Path):
        """What is usable, but, is no reason to fail."""
        changed.write_text(changed.read_text().replace("binlog_type = 9", "binlog_type = 6"))
        code, output = run("check", changed)
        assert code == 0
        assert "Nothing is refused, but 2 of 6 have limits." in output

    def test_a_function_that_cannot_be_read(self, changed: Path):
        """The table is refused, as its CREATE TABLE would be."""
        changed.write_text(changed.read_text().replace("NDB$MAX(x)", "NDB$MAX(x"))
        code, output = run("check", changed)
        assert code == REFUSED
        assert "missing ')'" in output

    def test_a_function_of_a_user(self, changed: Path):
        """The manual has no opinion on it, and what it needs is its author's to say."""
        changed.write_text(changed.read_text().replace("NDB$MAX(x)", "at_least(x)"))
        code, output = run("check", changed, "--function", "docs.examples.at_least:at_least")
        assert code == 0
        assert "at_least(x)" in output
        assert "does not say which images it needs" in output

    def test_transaction_ids_of_a_run_file(self, changed: Path):
        """They are those of the cluster whose changes arrive."""
        text = changed.read_text().replace("NDB$MAX(x)", "NDB$EPOCH_TRANS()")
        for cluster, code in (("A", 0), ("B", REFUSED)):
            head = f"[clusters.{cluster}]\n"
            changed.write_text(text.replace(head, f'{head}ndb_log_transaction_id = "OFF"\n'))
            assert run("check", changed)[0] == code


class TestResolve:
    """Policies of resolve."""

    def test_a_pair_that_the_manual_warns_of(self, changed: Path, tmp_path: Path):
        """Nothing is read or written; the message names cluster, function, table, and what would work."""
        out = tmp_path / "out"
        for file in changed.parent.glob("*.binlog.*"):
            file.write_bytes(b"nothing")
        code, output = run("resolve", changed, "--out", out, "--engine", "reference")
        assert code == REFUSED
        assert "A: NDB$MAX(x) with binlog_type 9 FULL_USE_UPDATE_MINIMAL on table cft.t1 is refused" in output
        assert "What would work: binlog_type = 7 FULL_USE_UPDATE." in output
        assert not out.exists()

    def test_as_the_server_does(self, changed: Path, tmp_path: Path):
        """With policy needs the same run is resolved."""
        code, output = run("resolve", changed, "--out", tmp_path / "out", "--engine", "reference", "--policy", "needs")
        assert (code, "resolved by NDB$MAX(x)" in output) == (0, True)

    def test_what_the_server_refuses_is_a_result(self):
        """A table that is not created, or an applier that would stop, is not the policy's business."""
        for case in ("epoch/table_with_text_type7", "max/resolve_type_float_unsigned_type7", "max/probe_type3"):
            configuration = ConflictCase.load(RECORDINGS / "conflict" / case).configuration()
            refuse_by_policy(configuration, Policy.MANUAL)

    def test_needs_refuses_nothing(self, changed: Path):
        """Also not what is refused in the table: the applier will stop, as the server's does."""
        changed.write_text(changed.read_text().replace("NDB$MAX(x)", "NDB$OLD(x)"))
        configuration = load_run_file(changed).configuration
        assert any(each.status.value == "refused" for each in check_run(configuration, Policy.NEEDS))
        refuse_by_policy(configuration, Policy.NEEDS)
        with pytest.raises(ConfigurationError, match="is refused: The manual says"):
            refuse_by_policy(configuration, Policy.MANUAL)


def test_no_command_writes_over_a_file_that_it_reads(changed: Path):
    """`--json` refuses the run file, what it names, and the schema; nothing of them changes."""
    folder = changed.parent
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for target in ("run.toml", "schema.sql", "A.binlog.000001"):
        code, output = run("check", changed, "--json", folder / target)
        assert (code, "would be overwritten" in output) == (REFUSED, True)
    schema = folder / "schema.sql"
    asked = ("--function", "NDB$OLD(x)", "--schema", schema, "--table", "t2", "--json", schema)
    assert run("requirements", *asked)[0] == REFUSED
    assert run("conformance", folder, "--engine", "reference", "--json", folder / "steps.json")[0] == REFUSED
    assert before == {path: path.read_bytes() for path in folder.iterdir()}
