"""One planted fault of each kind: exactly the findings that follow from it, and what they say."""

from pathlib import Path

import attrs
import pytest

from conflict.checking.findings import Code, Severity
from conflict.checking.report import Report
from conflict.config.arguments import DeploymentPolicy
from tests.conflict.checking.configurations import EXCEPTIONS, FIRST_COLUMNS, KEY, TABLE, Planned, row

OLD = Planned()
EPOCH = Planned(function="NDB$EPOCH()", server_id=1, rows=row("t", 2, 7, None))
ROLES = Planned(function="NDB$EPOCH2_TRANS()", roles=("PRIMARY", "SECONDARY"))
ALWAYS = {"037", "038", "095"}  # notes on every function by epoch, and on other releases than 9.7
BLOB = "CREATE TABLE t (k INT NOT NULL, x INT UNSIGNED NOT NULL, v TEXT, PRIMARY KEY (k)) ENGINE=NDB;\n"
THIRD = '[clusters.C]\nserver_id = 3\nreplicates_from = ["B"]\n'
RING = ('replicates_from = ["C"]', 'replicates_from = ["A"]')


def with_(planned: Planned, **changes: object) -> Planned:
    """Return a configuration with a fault."""
    return attrs.evolve(planned, **changes)


def found(report: Report) -> set[tuple[str, str]]:
    """Return codes without NDB-E, and the clusters of their places; not the notes on every function by epoch."""
    clusters: dict[str, set[str]] = {}
    for finding in report.findings:
        code = finding.code.removeprefix("NDB-E")
        clusters.setdefault(code, set()).update(place.cluster for place in finding.places)
    return {(code, "".join(sorted(names))) for code, names in clusters.items() if code not in ALWAYS}


@pytest.mark.parametrize(
    ("planned", "notes"), [(OLD, []), (EPOCH, ["NDB-E037", "NDB-E038"]), (ROLES, ["NDB-E037"])], ids=lambda each: ""
)
def test_a_configuration_without_fault_has_no_findings_but_notes(
    planned: Planned, notes: list[str], tmp_path: Path
) -> None:
    """Notes on hidden columns and delete-delete are all."""
    report = planned.report(tmp_path)
    assert [finding.code for finding in report.findings] == notes
    assert [finding.code for finding in report.of(Severity.NOTE)] == notes


def test_rows_for_every_sql_node_of_a_cluster_have_an_effect(tmp_path: Path) -> None:
    """As the manual's failover needs them; a row for a server of no cluster has none."""
    rows = "".join(row("t", *each) for each in ((2, 7, None), (3, 7, "NDB$EPOCH()"), (4, 7, None)))
    nodes = with_(EPOCH, entries=("server_ids = [1, 3]", "server_ids = [2, 4]"), rows=rows)
    assert found(nodes.report(tmp_path)) == set()
    report = with_(nodes, rows=rows + row("t", 9, 7, None)).report(tmp_path)
    (other,) = [each for each in report.findings if each.code.removeprefix("NDB-E") not in ALWAYS]
    assert "it is for server 9, and the servers have the ids 1, 2, 3, 4." in other.sentence


# The base, the fault as changes of it, and the findings with the clusters that they hold for.
PLANTED = {
    "conflict_fn that cannot be read": (OLD, {"function": "NDB$OLD(x"}, {("001", "AB")}),
    "no resolve column": (OLD, {"function": "NDB$OLD(X)"}, {("002", "AB")}),
    "signed resolve column": (OLD, {"table": TABLE.replace("x INT UNSIGNED", "x INT")}, {("003", "AB")}),
    "blobs": (ROLES, {"table": BLOB}, {("004", "AB")}),
    "updates as writes under roles": (ROLES, {"binlog_type": 3}, {("005", "AB")}),
    "ambiguous rows": (
        OLD,
        {"rows": row("t", 0, 7, None, "SHOP")},
        {("006", "AB")},
    ),
    "a table that is not there": (OLD, {"rows": row("tt", 0, 7, "NDB$OLD(x)")}, {("007", "AB")}),
    "a database that is not there": (OLD, {"rows": row("t", 0, 7, "NDB$OLD(x)", "shp")}, {("007", "AB")}),
    "another server": (OLD, {"rows": row("t", 7, 7, "NDB$OLD(x)")}, {("008", "")}),
    "another engine": (OLD, {"table": TABLE.replace("NDB", "InnoDB")}, {("009", "AB")}),
    "no update can be judged": (OLD, {"binlog_type": 9}, {("011", "AB")}),
    "updates that leave the column out": (
        with_(OLD, function="NDB$MAX_DELETE_WIN(x)"),
        {"binlog_type": 6},
        {("012", "AB")},
    ),
    "deletes without before values": (
        with_(OLD, function="NDB$MAX_INS(x)"),
        {"table": TABLE.replace(", v INT", ""), "binlog_type": 6},
        {("013", "AB")},
    ),
    "updates as writes": (EPOCH, {"rows": row("t", 2, 3, None)}, {("014", "A")}),
    "updates as writes by the options": (
        EPOCH,
        {"rows": ""},
        {("014", "A")},
    ),
    "a type that the manual advises against": (
        with_(OLD, function="NDB$MAX_DEL_WIN_INS(x)"),
        {"binlog_type": 9},
        {("015", "AB")},
    ),
    "nothing is logged": (with_(OLD, function="NDB$MAX(x)"), {"binlog_type": 1}, {("016", "AB")}),
    "NULL in the resolve column": (
        OLD,
        {"table": TABLE.replace("x INT UNSIGNED NOT NULL", "x INT UNSIGNED")},
        {("017", "AB")},
    ),
    "a resolve column in the key": (
        OLD,
        {
            "table": TABLE.replace("(k))", "(k, x))"),
            "exceptions": EXCEPTIONS.replace("k INT NOT NULL,", "k INT NOT NULL, x INT UNSIGNED NOT NULL,"),
        },
        {("018", "AB")},
    ),
    "a function on one side": (OLD, {"rows": row("t", 2, 7, None)}, {("019", "A")}),
    "no transaction ids": (ROLES, {"b": {"ndb_log_transaction_id": "OFF"}}, {("020", "A")}),
    "no applied epochs": (EPOCH, {"b": {"ndb_log_apply_status": "OFF"}}, {("021", "A")}),
    "no applied epochs, under roles": (ROLES, {"b": {"ndb_log_apply_status": "OFF"}}, {("021", "A")}),
    "no replica updates": (EPOCH, {"a": {"log_replica_updates": "OFF"}}, {("022", "A")}),
    "no replica updates in a ring": (
        OLD,
        {"clusters": THIRD, "entries": RING, "a": {"log_replica_updates": "OFF"}},
        {("022", "A"), ("025", "C")},
    ),
    "no binlog": (OLD, {"a": {"ndb_log_bin": "OFF"}}, {("023", "A")}),
    "compressed epochs": (OLD, {"a": {"binlog_transaction_compression": "ON"}}, {("027", "A")}),
    "compressed epochs of NDB alone": (OLD, {"b": {"ndb_log_transaction_compression": "ON"}}, {("027", "B")}),
    "compressed epochs, of which nothing comes back": (
        OLD,
        {"a": {"ndb_log_transaction_compression": "ON", "ndb_log_apply_status": "OFF", "log_replica_updates": "OFF"}},
        set(),
    ),
    "compressed epochs in a ring": (
        OLD,
        {"clusters": THIRD, "entries": RING, "a": {"binlog_transaction_compression": "ON"}},
        {("027", "A"), ("025", "C")},
    ),
    "few bits": (with_(EPOCH, function="NDB$EPOCH(4)"), {}, {("024", "A")}),
    "long checkpoints": (
        EPOCH,
        {"config_ini": "[NDBD DEFAULT]\nTimeBetweenGlobalCheckpoints: 10000\n[ndbd]\nTimeBetweenEpochs=50\n"},
        {("024", "A")},
    ),
    "reads under type 8": (
        with_(EPOCH, function="NDB$EPOCH_TRANS()"),
        {"binlog_type": 8, "rows": row("t", 2, 8, None), "b": {"ndb_log_exclusive_reads": "1"}},
        {("026", "A")},
    ),
    "no role on one side": (ROLES, {"roles": ("NONE", "SECONDARY")}, {("030", "A")}),
    "no roles": (ROLES, {"roles": ("NONE", "NONE")}, {("030", "AB")}),
    "role PASS": (ROLES, {"roles": ("PASS", "PASS")}, {("031", "AB")}),
    "two primaries": (ROLES, {"roles": ("PRIMARY", "PRIMARY")}, {("032", "AB")}),
    "EPOCH on both sides": (EPOCH, {"server_id": 0, "rows": ""}, {("033", "AB")}),
    "three clusters": (
        with_(ROLES, clusters=THIRD, entries=RING),
        {},
        {("034", "ABC"), ("025", "C")},
    ),
    "refreshes that are not logged": (
        EPOCH,
        {"binlog_type": 1, "rows": row("t", 2, 7, None)},
        {("035", "A")},
    ),
    "roles on one side": (ROLES, {"rows": row("t", 2, 7, None)}, {("036", "A")}),
    "two functions by column": (OLD, {"server_id": 1, "rows": row("t", 2, 7, "NDB$MAX(x)")}, {("108", "AB")}),
    "two columns to compare": (
        OLD,
        {
            "table": TABLE.replace("v INT", "v INT UNSIGNED NOT NULL"),
            "server_id": 1,
            "rows": row("t", 2, 7, "NDB$OLD(v)"),
        },
        {("108", "AB")},
    ),
    "two functions with roles": (ROLES, {"server_id": 1, "rows": row("t", 2, 7, "NDB$EPOCH2()")}, {("108", "AB")}),
    "bits of one function with roles": (
        ROLES,
        {"server_id": 1, "rows": row("t", 2, 7, "NDB$EPOCH2_TRANS(7)")},
        set(),
    ),
    "a function by column that can judge what another one refreshes": (
        EPOCH,
        {"rows": row("t", 2, 7, "NDB$MAX_INS(x)")},
        {("039", "B")},
    ),
    "a function by column that refreshes contradict": (
        EPOCH,
        {"rows": row("t", 2, 7, "NDB$MAX_DELETE_WIN(x)")},
        {("108", "B")},
    ),
    "nothing is logged of a table without function": (
        OLD,
        {"function": None, "exceptions": "", "binlog_type": 1},
        {("016", "AB")},
    ),
    "a table without function that one side logs": (
        with_(OLD, function=None, exceptions="", server_id=1),
        {"rows": row("t", 2, 1, None)},
        {("016", "B")},
    ),
    "a type that servers do not know": (
        with_(OLD, function=None, exceptions=""),
        {"binlog_type": 5},
        {("010", "AB"), ("109", "AB")},
    ),
    "an exceptions table without the key": (
        OLD,
        {"exceptions": EXCEPTIONS.replace("k INT NOT NULL, ", "")},
        {("110", "AB")},
    ),
    "roles for a function that has none": (OLD, {"roles": ("PRIMARY", "SECONDARY")}, {("084", "AB")}),
    "letter case that counts on one side": (
        OLD,
        {
            "more": "CREATE TABLE Big (k INT NOT NULL PRIMARY KEY) ENGINE=NDB;",
            "a": {"lower_case_table_names": "1"},
            "b": {"lower_case_table_names": "0"},
        },
        {("010", "AB"), ("111", "B")},
    ),
    "a server that users cannot change": (OLD, {"a": {"super_read_only": "ON", "read_only": "ON"}}, {("107", "A")}),
    "a server that few users can change": (OLD, {"b": {"read_only": "1"}}, {("107", "B")}),
    "a function by column beside one that refreshes": (
        EPOCH,
        {"rows": row("t", 2, 7, "NDB$MAX(x)")},
        {("039", "B")},
    ),
    "no primary key": (
        with_(OLD, function=None, exceptions=""),
        {"table": TABLE.replace(", PRIMARY KEY (k)", "")},
        {("010", "AB"), ("040", "AB")},
    ),
    "no primary key, and nothing to write down": (
        with_(EPOCH, exceptions=""),
        {"table": TABLE.replace(", PRIMARY KEY (k)", "")},
        {("040", "AB")},
    ),
    "a unique key": (OLD, {"table": TABLE.replace("(k))", "(k), UNIQUE (v))")}, {("041", "AB")}),
    "a foreign key": (
        OLD,
        {
            "table": TABLE.replace("(k))", "(k), CONSTRAINT own FOREIGN KEY (v) REFERENCES p (id))"),
            "more": "CREATE TABLE p (id INT NOT NULL PRIMARY KEY) ENGINE=NDB;",
        },
        {("010", "AB"), ("042", "AB")},
    ),
    "blobs in reach": (
        ROLES,
        {"more": "CREATE TABLE u (k INT NOT NULL PRIMARY KEY, v TEXT) ENGINE=NDB;"},
        {("010", "AB"), ("043", "AB")},
    ),
    "row slices": (OLD, {"slices": "binlog_row_slice_count = 4\nbinlog_row_slice_id = 2\n"}, {("044", "AB")}),
    "row slices of a server": (OLD, {"a": {"ndb_log_row_slice_count": "2"}}, {("044", "A")}),
    "a malformed exceptions table": (OLD, {"exceptions": EXCEPTIONS.replace("BIGINT", "INT")}, {("050", "AB")}),
    "an unknown column in an exceptions table": (
        OLD,
        {"exceptions": f"CREATE TABLE `t$EX` ({FIRST_COLUMNS}, k INT NOT NULL, w INT, {KEY}) ENGINE=NDB;\n"},
        {("051", "AB")},
    ),
    "an exceptions table in lower case": (OLD, {"exceptions": EXCEPTIONS.replace("$EX", "$ex")}, {("052", "AB")}),
    "an exceptions table of nothing": (
        OLD,
        {"more": EXCEPTIONS.replace("t$EX", "T$EX")},
        {("053", "AB")},
    ),
    "an exceptions table of another engine": (
        OLD,
        {"exceptions": EXCEPTIONS.replace("NDB;", "InnoDB;")},
        {("053", "AB")},
    ),
    "a vector is no blob": (ROLES, {"table": BLOB.replace("v TEXT", "v VECTOR(3)")}, set()),
    "an exceptions table without function": (OLD, {"function": None}, {("010", "AB"), ("053", "AB")}),
    "no exceptions table": (OLD, {"exceptions": ""}, {("054", "AB")}),
    "a wider column": (
        OLD,
        {"table_b": TABLE.replace("v INT", "v BIGINT")},
        {("NDB-R020", "AB")},
    ),
    "another order": (
        OLD,
        {"table_b": TABLE.replace("x INT UNSIGNED NOT NULL, v INT", "v INT, x INT UNSIGNED NOT NULL")},
        {("NDB-R010", "AB"), ("NDB-R024", "AB")},
    ),
    "no table on B": (
        with_(OLD, function=None, exceptions=""),
        {"table_b": "CREATE TABLE other (k INT NOT NULL PRIMARY KEY) ENGINE=NDB;"},
        {("NDB-R001", "AB")},
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault(name: str, tmp_path: Path) -> None:
    """It gives its findings and no others."""
    base, changes, expected = PLANTED[name]
    assert found(with_(base, **changes).report(tmp_path)) == expected


def test_every_code_is_planted() -> None:
    """Each code of the table follows from some fault above, or stands in a configuration without one."""
    planted = {code for _, _, expected in PLANTED.values() for code, _ in expected} | {"037", "038"}
    # Those of settings, filters and releases are planted in test_settings.py.
    assert {code for each in Code if (code := each.code.removeprefix("NDB-E")) < "060"} <= planted


def test_tables_with_the_same_fault_share_a_sentence_and_a_fix(tmp_path: Path) -> None:
    """One statement changes the rows of all of them."""
    more = TABLE.replace("TABLE t", "TABLE u") + EXCEPTIONS.replace("t$EX", "u$EX")
    report = with_(OLD, binlog_type=6, more=more, rows=row("u", 0, 6, "NDB$OLD(x)")).report(tmp_path)
    (deletes,) = [finding for finding in report.findings if finding.code == "NDB-E013"]
    assert [str(place) for place in deletes.places] == ["A: shop.t", "A: shop.u", "B: shop.t", "B: shop.u"]
    assert str(deletes.fix) == (
        "UPDATE mysql.ndb_replication SET binlog_type = 7 WHERE (db, table_name, server_id) IN "
        "(('shop', 't', 0), ('shop', 'u', 0));"
    )
    assert deletes.sentence == (
        "Under binlog_type 6 UPDATED_ONLY_USE_UPDATE, a delete lacks x in its before image, where NDB$OLD looks "
        "for it; the first one stops the applier with error 1296."
    )


def test_the_policy_needs_leaves_out_what_the_manual_advises_against(tmp_path: Path) -> None:
    """A finding of the manual is a warning; the server accepts it."""
    planned = with_(OLD, function="NDB$MAX(x)", binlog_type=9)
    assert found(planned.report(tmp_path)) == {("015", "AB")}
    assert planned.report(tmp_path).worst is Severity.WARNING
    assert found(planned.report(tmp_path, DeploymentPolicy.NEEDS)) == set()


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("NDB$OLD(x", "NDB$OLD(x)"),
        ("ndb$max(x)", "NDB$MAX(x)"),
        ("NDB$MAX", "NDB$MAX(version)"),
        ("NDB$EPOCH(40)", "NDB$EPOCH()"),
        ("NDB$EPOCH2_TRANS(3, 4)", "NDB$EPOCH2_TRANS(3)"),
    ],
)
def test_the_fix_of_a_conflict_fn_can_be_read(text: str, fix: str, tmp_path: Path) -> None:
    """It is the function that was probably meant."""
    (finding,) = with_(OLD, function=text).report(tmp_path).of(Severity.REFUSED)
    assert f"SET conflict_fn = '{fix}' WHERE" in str(finding.fix)


@pytest.mark.parametrize(
    "key", ["k INT UNSIGNED", "k VARCHAR(20)", "k ENUM('a', 'B') COLLATE utf8mb4_bin", "k BINARY(4)"]
)
@pytest.mark.parametrize("exceptions", ["", EXCEPTIONS.replace("BIGINT", "INT")])
def test_the_fix_of_an_exceptions_table_can_be_typed(key: str, exceptions: str, tmp_path: Path) -> None:
    """The server would use the table that the statement makes."""
    planned = with_(OLD, table=TABLE.replace("k INT", key), exceptions=exceptions)
    (finding,) = planned.report(tmp_path).findings
    assert finding.code == ("NDB-E050" if exceptions else "NDB-E054")
    (create,) = finding.fix.items
    assert found(with_(planned, exceptions=create).report(tmp_path)) == set()


def test_rows_for_data_frames(tmp_path: Path) -> None:
    """One row for each finding and place, and one for each table on each cluster."""
    report = with_(OLD, binlog_type=6).report(tmp_path)
    rows = [(each["code"], each["severity"], each["cluster"], each["table"], each["error"]) for each in report.rows]
    assert rows == [(code, "warning", cluster, "shop.t", 1296) for code in ("NDB-E012", "NDB-E013") for cluster in "AB"]
    assert [(each["cluster"], each["binlog_type"], each["marks"]) for each in report.table_rows] == [
        ("A", 6, ["U?", "D!"]),
        ("B", 6, ["U?", "D!"]),
    ]
    assert repr(report).endswith("0 refused, 2 warnings, 0 notes.")
