"""Settings of servers: each planted wrong is found with its code, right ones are not, and pairs of them neither."""

import random
from pathlib import Path

import attrs
import pytest

from conflict.checking.check import check_configuration
from conflict.checking.findings import Code
from conflict.checking.report import Report
from conflict.checking.rules.settings import SETTINGS, codes_of
from conflict.config.run_file import load_run_file
from conflict.config.server_settings import DEFAULTS, parse_server_variables
from conflict.errors import ConfigurationError
from conflict.rules.server_variables import VARIABLE_OF, VARIABLES, Effect, parse_release
from tests.conflict.checking.configurations import TABLE, Planned
from tests.conflict.checking.configurations import VARIABLES as VARIABLES_OF_TESTS
from tests.conflict.checking.test_planted import found
from tests.corpora import DEMO

# What a server says of itself where nothing is wrong.
RIGHT = {
    "gtid_mode": "OFF",
    "replica_skip_errors": "OFF",
    "sql_replica_skip_counter": "0",
    "replica_exec_mode": "STRICT",
    "replica_parallel_type": "LOGICAL_CLOCK",
    "replica_parallel_workers": "4",
    "replica_preserve_commit_order": "ON",
    "replica_allow_batching": "ON",
    "replicate_same_server_id": "OFF",
    "relay_log_recovery": "ON",
    "relay_log_purge": "ON",
    "relay_log_info_repository": "TABLE",
    "ndb_applier_allow_skip_epoch": "OFF",
    "ndb_log_empty_epochs": "OFF",
    "ndb_log_fail_terminate": "ON",
    "ndb_log_binlog_index": "ON",
    "ndb_log_transaction_dependency": "ON",
    "ndb_log_orig": "ON",
    "ndb_log_cache_size": "67108864",
    "ndb_table_temporary": "OFF",
    "binlog_transaction_dependency_tracking": "WRITESET",
    "sync_binlog": "1",
    "binlog_expire_logs_seconds": "604800",
    "binlog_expire_logs_auto_purge": "ON",
    "binlog_error_action": "ABORT_SERVER",
    "binlog_format": "ROW",
    "log_bin_use_v1_row_events": "OFF",
    "binlog_row_image": "FULL",
    "binlog_row_value_options": "",
    "auto_increment_increment": "2",
    "auto_increment_offset": "1",
    "server_id_bits": "32",
    "innodb_flush_log_at_trx_commit": "1",
    "log_slow_replica_statements": "OFF",
    "sql_log_off": "OFF",
}
SERIAL = TABLE.replace("k INT NOT NULL", "k INT NOT NULL AUTO_INCREMENT")
BASE = Planned(table=SERIAL, a=RIGHT, b={**RIGHT, "auto_increment_offset": "2"})

# The name of a variable, its wrong value, and the codes that follow on the cluster that has it, or on the other one.
WRONG = {
    "GTIDs": ({"gtid_mode": "ON"}, {("065", "A")}),
    "GTIDs soon": ({"gtid_mode": "on_permissive"}, {("065", "A")}),
    "all errors": ({"replica_skip_errors": "all"}, {("066", "A")}),
    "errors of definitions": ({"replica_skip_errors": "ddl_exist_errors"}, {("066", "A")}),
    "an error, by the older name": ({"slave_skip_errors": "1032,1062"}, {("066", "A")}),
    "a counter": ({"sql_replica_skip_counter": "1"}, {("066", "A")}),
    "skipped epochs alone": ({"ndb_applier_allow_skip_epoch": "ON"}, {("084", "A")}),
    "skipped epochs": (
        {"ndb_applier_allow_skip_epoch": "ON", "replica_skip_errors": "all"},
        {("066", "A"), ("067", "A")},
    ),
    "idempotent": ({"replica_exec_mode": "IDEMPOTENT"}, {("084", "A")}),
    "workers without dependencies": ({"ndb_log_transaction_dependency": "OFF"}, {("068", "B")}),
    "workers without write sets": ({"binlog_transaction_dependency_tracking": "COMMIT_ORDER"}, {("068", "B")}),
    "no commit order": ({"replica_preserve_commit_order": "OFF"}, {("069", "A")}),
    "by database": ({"replica_parallel_type": "DATABASE"}, {("070", "A")}),
    "no batching": ({"replica_allow_batching": "OFF"}, {("071", "A")}),
    "no batching, by the older name": ({"slave_allow_batching": "0"}, {("071", "A")}),
    "the same id": ({"replicate_same_server_id": "1"}, {("074", "A")}),
    "empty epochs": ({"ndb_log_empty_epochs": "ON"}, {("075", "A")}),
    "a server that goes on": ({"ndb_log_fail_terminate": "OFF"}, {("076", "A")}),
    "no index": ({"ndb_log_binlog_index": "OFF"}, {("077", "A")}),
    "no recovery": ({"relay_log_recovery": "OFF"}, {("078", "A")}),
    "a position in a file": ({"relay_log_info_repository": "FILE"}, {("078", "A")}),
    "kept relay logs": ({"relay_log_purge": "OFF"}, {("078", "A")}),
    "no sync": ({"sync_binlog": "0"}, {("079", "A")}),
    "rare sync": ({"sync_binlog": "1000"}, {("079", "A")}),
    "an hour": ({"binlog_expire_logs_seconds": "3600"}, {("080", "A")}),
    "logs for ever": ({"binlog_expire_logs_seconds": "0", "expire_logs_days": "0"}, {("096", "A")}),
    "no purge": ({"binlog_expire_logs_auto_purge": "OFF"}, {("096", "A")}),
    "a small relay log": ({"relay_log_space_limit": "1048576"}, {("097", "A")}),
    "errors of the log": ({"binlog_error_action": "IGNORE_ERROR"}, {("081", "A")}),
    "statements": ({"binlog_format": "STATEMENT"}, {("082", "A")}),
    "old rows events": ({"log_bin_use_v1_row_events": "ON"}, {("083", "A")}),
    "minimal images": ({"binlog_row_image": "MINIMAL"}, {("084", "A")}),
    "partial JSON": ({"binlog_row_value_options": "PARTIAL_JSON"}, {("084", "A")}),
    "tables without schema files": ({"ndb_table_temporary": "ON"}, {("084", "A")}),
    "the same keys": ({"auto_increment_offset": "2"}, {("085", "AB")}),
    "the manual's name": ({"ndb_conflict_role": "PRIMARY"}, {("086", "A")}),
    "a slip of the pen": ({"relpica_skip_errors": "all"}, {("086", "A")}),
    "no such variable": ({"ndb_log_everything": "ON"}, {("086", "A")}),
    "a log without mysql": ({"binlog_ignore_db": "mysql"}, {("060", "A"), ("063", "A")}),
    "a log of one database": ({"binlog_do_db": "shop"}, {("060", "A"), ("063", "A")}),
    "a log without the table": (
        {"binlog_ignore_db": "shop"},
        {("061", "B"), ("062", "B"), ("063", "A")},
    ),
    "mysql is ignored": ({"replicate_ignore_db": "mysql"}, {("060", "A"), ("063", "A")}),
    "one database": ({"replicate_do_db": "shop"}, {("060", "A"), ("063", "A")}),
    "one database and mysql": ({"replicate_do_db": "shop,mysql"}, {("063", "A")}),
    "ignored, and named": (
        {"replicate_ignore_db": "mysql", "replicate_do_table": "mysql.ndb_apply_status,shop.t"},
        {("060", "A"), ("063", "A")},
    ),
    "the table of epochs": ({"replicate_ignore_table": "mysql.ndb_apply_status"}, {("060", "A")}),
    "patterns of mysql": ({"replicate_wild_ignore_table": "mysql.%"}, {("060", "A")}),
    "patterns of the shop": ({"replicate_wild_do_table": "shop.%"}, {("060", "A")}),
    "patterns of both": ({"replicate_wild_do_table": "shop.%,mysql.ndb_apply_status"}, set()),
    "the table": ({"replicate_wild_ignore_table": "shop.t"}, {("061", "A"), ("062", "A")}),
    "another name": ({"replicate_rewrite_db": "stock->store"}, {("064", "A")}),
}


def with_a(planned: Planned, wrong: dict[str, str]) -> Planned:
    """Return a configuration with other variables of A; an older name takes the place of the present one."""
    present = {VARIABLE_OF[name].name for name in wrong if name in VARIABLE_OF}
    own = {name: value for name, value in planned.a.items() if name not in present}
    return attrs.evolve(planned, a={**own, **wrong})


def of_settings(report: Report) -> set[tuple[str, str]]:
    """Return the codes from 060 on, and the clusters that they hold for."""
    return {(code, where) for code, where in found(report) if code >= "060"}


def test_right_settings_give_no_finding(tmp_path: Path) -> None:
    """Not one, of whatever code."""
    assert found(BASE.report(tmp_path)) == set()


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_setting_is_found(name: str, tmp_path: Path) -> None:
    """By exactly the codes that follow from it; each finding names a page of the manual, and how to mend it."""
    wrong, expected = WRONG[name]
    report = with_a(BASE, wrong).report(tmp_path)
    assert found(report) == expected
    for finding in report.findings:
        assert finding.document["manual_page"]
        assert finding.sentence.endswith(".")
        assert str(finding.fix).endswith(".") or finding.kind is Code.RENAMED_DATABASE


def together(one: set[tuple[str, str]], other: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the findings of two configurations, with the clusters of both."""
    clusters: dict[str, str] = {}
    for code, where in (*one, *other):
        clusters[code] = "".join(sorted({*clusters.get(code, ""), *where}))
    return set(clusters.items())


# Two settings of one server that say the same, hide each other, or make one fault of two.
_WITH_SKIPPED = {"replica_skip_errors", "slave_skip_errors", "ndb_applier_allow_skip_epoch"}
_TOGETHER = (
    _WITH_SKIPPED,
    {"ndb_log_transaction_dependency", "binlog_transaction_dependency_tracking", "replica_preserve_commit_order"},
    {"relay_log_recovery", "relay_log_purge"},
    {"binlog_expire_logs_seconds", "binlog_expire_logs_auto_purge", "expire_logs_days"},
    {name for name in VARIABLE_OF if name.startswith(("replicate_", "binlog_do", "binlog_ignore"))},
)


def pairs(number: int) -> list[tuple[str, str]]:
    """Return seeded pairs of planted mistakes that do not touch each other."""
    chosen, drawn = random.Random(42), list[tuple[str, str]]()
    while len(drawn) < number:
        one, other = chosen.sample(sorted(WRONG), 2)
        names = {VARIABLE_OF[each].name if each in VARIABLE_OF else each for each in (*WRONG[one][0], *WRONG[other][0])}
        apart = len(names) == len(WRONG[one][0]) + len(WRONG[other][0])
        if apart and all(len(names & group) < 2 or names <= set(WRONG[one][0]) for group in _TOGETHER):
            drawn.append((one, other))
    return drawn


@pytest.mark.parametrize("number", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_pairs_of_mistakes(number: int, tmp_path: Path) -> None:
    """Both are found, nothing is silent and nothing false."""
    silent, false = list[tuple[object, ...]](), list[tuple[object, ...]]()
    for one, other in pairs(number):
        first, second = (WRONG[each] for each in (one, other))
        planted, expected = with_a(with_a(BASE, first[0]), second[0]), together(first[1], second[1])
        seen = found(planted.report(tmp_path))
        silent += [(one, other, each) for each in expected - seen]
        false += [(one, other, each) for each in seen - expected]
    assert (silent, false) == ([], [])


def test_servers_that_do_not_apply_or_are_not_replicated_from(tmp_path: Path) -> None:
    """A setting of appliers does not matter where nothing is applied, and one of logs not where nobody reads them."""
    one_way = attrs.evolve(BASE, entries=("replicates_from = []", 'replicates_from = ["A"]'))
    assert of_settings(with_a(one_way, {"replica_skip_errors": "all"}).report(tmp_path)) == set()
    assert of_settings(with_a(one_way, {"sync_binlog": "0"}).report(tmp_path)) == {("079", "A")}
    on_b = attrs.evolve(one_way, b={**one_way.b, "sync_binlog": "0", "replica_skip_errors": "all"})
    assert of_settings(on_b.report(tmp_path)) == {("066", "B")}


def test_server_ids(tmp_path: Path) -> None:
    """Id 0 is refused by servers; an id that does not fit into its bits, too."""
    nodes = attrs.evolve(BASE, entries=("server_ids = [0, 3]", ""))
    assert of_settings(nodes.report(tmp_path)) == {("072", "A")}
    alike = with_a(attrs.evolve(BASE, entries=("", "server_ids = [129, 2]")), {"server_id_bits": "7"})
    assert of_settings(alike.report(tmp_path)) == {("073", "A")}
    wide = with_a(attrs.evolve(BASE, entries=("server_ids = [129, 3]", "")), {"server_id_bits": "7"})
    assert of_settings(wide.report(tmp_path)) == {("072", "A")}


def test_filters_on_both_sides(tmp_path: Path) -> None:
    """A table that is filtered on both has two functions without use, and no side of its own."""
    both = {"replicate_wild_ignore_table": "shop.t"}
    planted = attrs.evolve(BASE, a={**BASE.a, **both}, b={**BASE.b, **both})
    assert of_settings(planted.report(tmp_path)) == {("061", "AB")}


def test_days_in_place_of_seconds(tmp_path: Path) -> None:
    """Before 8.2, days count if seconds are 0, or if an option file sets days alone; else seconds do."""
    week = {"binlog_expire_logs_seconds": "0", "expire_logs_days": "7"}
    assert of_settings(with_a(BASE, week).report(tmp_path)) == set()
    both = {"binlog_expire_logs_seconds": "3600", "expire_logs_days": "7"}
    assert of_settings(with_a(BASE, both).report(tmp_path)) == {("080", "A")}
    days_not_listed = {"binlog_expire_logs_seconds": "0"}
    assert of_settings(with_a(BASE, days_not_listed).report(tmp_path)) == set()
    for text, expected in (("expire-logs-days=0", {("096", "A")}), ("expire-logs-days=1", set()), ("", set())):
        (tmp_path / "A.txt").write_text(f"[mysqld]\nserver-id=1\n{text}\n")
        loaded = load_run_file(tmp_path / "run.toml", binlogs=False).configuration
        assert {each for each in of_settings(check_configuration(loaded)) if each[0] in ("080", "096")} == expected


def test_logs_that_are_never_purged(tmp_path: Path) -> None:
    """A server that is told not to purge does not, whatever the age; one that nobody reads may keep its logs."""
    kept = {"binlog_expire_logs_seconds": "3600", "binlog_expire_logs_auto_purge": "OFF"}
    assert of_settings(with_a(BASE, kept).report(tmp_path)) == {("096", "A")}
    one_way = attrs.evolve(BASE, entries=('replicates_from = ["B"]', "replicates_from = []"))
    assert of_settings(with_a(one_way, kept).report(tmp_path)) == set()


def test_unknown_names_name_the_nearest(tmp_path: Path) -> None:
    """The manual's name of the role is said to be that."""
    names = {"ndb_conflict_role": "PRIMARY", "relpica_skip_errors": "all", "binlog_row_images": "FULL"}
    sentences = [each.sentence for each in with_a(BASE, names).report(tmp_path).findings]
    manual = "it is the manual's name of ndb_applier_conflict_role"
    assert sentences == [
        f"ndb_conflict_role is no variable of a server; {manual}. It sets nothing.",
        "relpica_skip_errors is no variable of a server; the nearest is replica_skip_errors. It sets nothing.",
        "binlog_row_images is no variable of a server; the nearest is binlog_row_image. It sets nothing.",
    ]


def test_an_option_file_has_defaults(tmp_path: Path) -> None:
    """
    Four workers, without dependencies in the log; a relay log that is not fetched again; a server that goes on.

    Before 8.0.27 there is one worker, before 8.0.30 no batch, before 8.4 dependencies are those of commits.
    """
    text = "[mysqld]\nserver-id=1\nlog-bin\nndb-log-bin\nndb-log-transaction-id\nndb-log-apply-status\n"
    planned = attrs.evolve(BASE, table=TABLE, a={}, b={})
    planned.report(tmp_path)
    (tmp_path / "A.txt").write_text(text)
    (tmp_path / "B.txt").write_text(text.replace("=1", "=2"))
    loaded = load_run_file(tmp_path / "run.toml", binlogs=False).configuration
    assert of_settings(check_configuration(loaded)) == {("068", "AB"), ("076", "AB"), ("078", "AB")}
    old = check_configuration(loaded, release=parse_release("8.0.20"))
    assert of_settings(old) == {("071", "AB"), ("078", "AB")}
    for name, server_id in (("A", 1), ("B", 2)):
        (tmp_path / f"{name}.txt").write_text(f"{text.replace('=1', f'={server_id}')}ndb-log-transaction-dependency\n")
    loaded = load_run_file(tmp_path / "run.toml", binlogs=False).configuration
    assert of_settings(check_configuration(loaded)) == {("076", "AB"), ("078", "AB")}
    tracking = check_configuration(loaded, release=parse_release("8.0.36"))
    assert of_settings(tracking) == {("068", "AB"), ("076", "AB"), ("078", "AB")}


RELEASES = [
    ("8.0.25", {"replica_parallel_workers": "1"}, {("087", "A")}),
    ("8.0.25", {"slave_parallel_workers": "1"}, set()),
    ("8.0.32", {"ndb_log_transaction_dependency": "ON"}, {("087", "A")}),
    ("8.0.33", {"ndb_log_transaction_dependency": "ON"}, set()),
    ("8.2.0", {"relay_log_info_repository": "TABLE"}, set()),
    ("8.3.0", {"relay_log_info_repository": "TABLE"}, {("087", "A")}),
    ("8.4.0-cluster", {"binlog_transaction_dependency_tracking": "WRITESET"}, {("087", "A")}),
    ("9.3.0", {"ndb_log_row_slice_count": "1"}, {("087", "A")}),
    ("9.4.0", {"ndb_log_row_slice_count": "1"}, set()),
    *(
        (release, {"ndb_log_cache_size": "67108864"}, {("087", "A")})
        for release in ("8.0.39", "8.1.0", "8.4.2", "9.0.1")
    ),
    *((release, {"ndb_log_cache_size": "67108864"}, set()) for release in ("8.0.40", "8.4.3", "9.1.0", "9.7.4")),
    ("8.0.32", {"replica_parallel_workers": "4"}, {("090", "A")}),
    ("8.0.33", {"replica_parallel_workers": "4"}, set()),
    ("8.0.30", {"replica_parallel_workers": "1"}, set()),
]


def report_of(planned: Planned, folder: Path, release: str) -> Report:
    """Return the report of a configuration for a release."""
    planned.report(folder)
    loaded = load_run_file(folder / "run.toml", binlogs=False).configuration
    return check_configuration(loaded, release=parse_release(release))


@pytest.mark.parametrize(("release", "variables", "expected"), RELEASES)
def test_variables_of_a_release(
    release: str, variables: dict[str, str], expected: set[tuple[str, str]], tmp_path: Path
) -> None:
    """Those that it lacks, and workers that it does not support; nothing without a release."""
    planned = Planned(a=variables)
    names = {"log_replica_updates"} if release.startswith("8.0.2") else set()
    seen = report_of(planned, tmp_path, release)
    others = {each.at for each in seen.findings if each.kind is Code.NOT_IN_RELEASE} - set(variables)
    assert others <= {*names, "ndb_applier_conflict_role"}
    kept = [each for each in seen.findings if each.at not in others]
    assert of_settings(attrs.evolve(seen, findings=tuple(kept))) == expected
    assert of_settings(planned.report(tmp_path)) == set()


@pytest.mark.parametrize(
    ("release", "planned", "expected"),
    [
        ("8.0.29", Planned(function="NDB$MAX_INS(x)"), {("088", "AB")}),
        ("8.0.30", Planned(function="NDB$MAX_INS(x)"), set()),
        ("8.0.29", Planned(function="NDB$MAX(x)"), set()),
        ("9.3.0", Planned(slices="binlog_row_slice_count = 2\nbinlog_row_slice_id = 1\n"), {("091", "AB")}),
        ("9.4.0", Planned(slices="binlog_row_slice_count = 2\nbinlog_row_slice_id = 1\n"), set()),
    ],
)
def test_functions_and_rows_of_a_release(
    release: str, planned: Planned, expected: set[tuple[str, str]], tmp_path: Path
) -> None:
    """Functions for inserts are there from 8.0.30 on, slices in mysql.ndb_replication from 9.4 on."""
    assert of_settings(report_of(planned, tmp_path, release)) == expected


@pytest.mark.parametrize(("version", "codes"), [("9.7.4-cluster", set()), ("8.0.32-cluster", {"NDB-E095", "NDB-E090"})])
def test_the_release_that_a_log_says(version: str, codes: set[str], tmp_path: Path) -> None:
    """Where no variable says it; of another release than the recorded one that is a note."""
    for name in "AB":
        log = (DEMO / f"{name}.binlog.000001").read_bytes()
        (tmp_path / f"{name}.000001").write_bytes(log.replace(b"9.7.4-cluster\0", version.encode().ljust(14, b"\0"), 1))
    entries = tuple(f'binlogs = ["{name}.0*"]' for name in "AB")
    report = Planned(a={"replica_parallel_workers": "4"}, entries=entries).report(tmp_path)
    assert {each.code for each in report.findings} & {"NDB-E090", "NDB-E095"} == codes
    (tmp_path / "A.000001").write_bytes(b"no binlog")  # then the other one says it
    report = Planned(a={"replica_parallel_workers": "4"}, entries=entries).report(tmp_path)
    assert {each.code for each in report.findings} & {"NDB-E090", "NDB-E095"} == codes


@pytest.mark.parametrize("binlog_type", [8, 9])
@pytest.mark.parametrize(
    ("release", "key", "lost"),
    [
        ("8.0.34", "k VARCHAR(20) NOT NULL", True),
        ("8.1.0", "k VARCHAR(20) NOT NULL", True),
        ("8.0.35", "k VARCHAR(20) NOT NULL", False),
        ("8.4.0", "k VARCHAR(20) NOT NULL", False),
        ("8.0.34", "k VARCHAR(20) COLLATE utf8mb4_bin NOT NULL", False),
        ("8.0.34", "k INT NOT NULL", False),
    ],
)
def test_minimal_types_lose_key_columns(release: str, key: str, lost: bool, binlog_type: int, tmp_path: Path) -> None:
    """Both of them, before 8.0.35, where two keys that differ can be equal."""
    table = TABLE.replace("k INT NOT NULL", key)
    planned = Planned(function="NDB$MAX_DEL_WIN_INS(x)", binlog_type=binlog_type, table=table, exceptions="")
    assert (("089", "AB") in found(report_of(planned, tmp_path, release))) is lost
    full = attrs.evolve(planned, binlog_type=7)
    assert ("089", "AB") not in found(report_of(full, tmp_path, release))


@pytest.mark.parametrize("text", ["8", "8.0", "9.x", "", "8.0.34.1", "mysql"])
def test_what_is_no_release(text: str) -> None:
    """Three numbers are needed, since rules begin with the third."""
    with pytest.raises(ConfigurationError, match=r"give three numbers, like 8\.0\.34"):
        parse_release(text)


def test_every_judged_variable_has_a_code_and_no_other() -> None:
    """The table of names and the rules agree, and so do defaults that both need."""
    judged = {each.name for each in VARIABLES if each.effect is Effect.JUDGED}
    assert judged == {each.name for each in VARIABLES if codes_of(each.name)}
    assert {each.name for each in SETTINGS} <= judged
    assert {name: VARIABLE_OF[name].default for name in DEFAULTS if VARIABLE_OF[name].default is not None} == {
        name: value for name, value in DEFAULTS.items() if VARIABLE_OF[name].default is not None
    }


def test_names_are_unique_and_spelt_with_underscores() -> None:
    """No name stands for two variables, and each release is one."""
    names = [name for each in VARIABLES for name in (each.name, each.older) if name]
    assert len(names) == len(set(names))
    assert all(name.replace("_", "").isalnum() and name == name.lower() for name in names)
    for each in VARIABLES:
        for release in filter(None, (*each.since.split(","), each.until, *each.changed[:1])):
            assert parse_release(release)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("binlog-do-db=shop,mysql\n", {("063", "A"), ("092", "A")}),
        ("replicate-wild-ignore-table=old.%,older.%\n", {("092", "A")}),
        ("binlog-do-db=shop\nbinlog-do-db=mysql\n", {("063", "A")}),
        ("replicate-wild-ignore-table=old.%\nreplicate-wild-ignore-table=older.%\n", set()),
    ],
)
def test_a_list_in_an_option_file(lines: str, expected: set[tuple[str, str]], tmp_path: Path) -> None:
    """A server takes it for one name; an option that is repeated has several."""
    BASE.report(tmp_path)
    right = "".join(f"{name}={value}\n" for name, value in {**VARIABLES_OF_TESTS, **RIGHT}.items())
    (tmp_path / "A.txt").write_text(f"[mysqld]\nserver-id=1\n{right}{lines}")
    loaded = load_run_file(tmp_path / "run.toml", binlogs=False).configuration
    assert of_settings(check_configuration(loaded)) == expected


def test_how_names_are_read() -> None:
    """An older name is the same variable, and is kept as it is written; an option of its own may begin with skip."""
    variables = parse_server_variables("[mysqld]\nslave-skip-errors=1062\nskip-slave-start\nskip-ndb-log-bin\n")
    assert variables["replica_skip_errors"] == "1062"
    assert variables["skip_replica_start"] == "ON"
    assert variables["ndb_log_bin"] == "OFF"
    assert variables.options == (("slave_skip_errors", "1062"), ("skip_slave_start", "ON"), ("ndb_log_bin", "OFF"))
    assert variables.complete
    assert not parse_server_variables('{"gtid_mode": "OFF"}').complete


def test_keys_that_are_not_generated(tmp_path: Path) -> None:
    """A table without AUTO_INCREMENT has no generated keys."""
    planned = attrs.evolve(BASE, table=TABLE)
    assert of_settings(with_a(planned, {"auto_increment_offset": "2"}).report(tmp_path)) == set()


# Codes that follow from what running servers, or binlogs, show; or that are planted in test_planted.py.
NOT_OF_SETTINGS = {"093", "094", "095", "098", "099", "100", "101", "102", "103", "104", "105", "106"}
NOT_OF_SETTINGS |= {"107", "108", "109", "110", "111"}
NOT_OF_SETTINGS |= {"112", "113"}


def test_every_code_of_settings_is_planted() -> None:
    """Each code from 060 on follows from some fault of this module, but for those of servers and logs."""
    planted = {code for _, expected in WRONG.values() for code, _ in expected}
    planted |= {code for _, _, expected in RELEASES for code, _ in expected}
    planted |= {"072", "073", "088", "089", "091", "092"}
    assert planted == {code for each in Code if (code := each.code.removeprefix("NDB-E")) >= "060"} - NOT_OF_SETTINGS
