"""What a run says of a fault: every one is noticed, and recordings without a fault raise no alarm."""

import random
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from conflict.config.configuration import Configuration
from conflict.errors import ConflictError
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.preparing.log_files import check_log_files
from conflict.judge.case import ConflictCase
from conflict.results.cause_kinds import CauseKind
from conflict.results.doubts import doubts_of
from conflict.results.run_document import RunDocument
from conflict.rules.replication_table import Role
from conflict.runs.pipeline import ENGINES
from ndb_formats.errors import WrongKeyError
from tests.conflict import faults
from tests.conflict.faults import with_files
from tests.corpora import RECORDINGS

CONFLICT = RECORDINGS / "conflict"
# Recordings with many changes, of functions of every family.
MANY = (
    *("epoch/random_28_type8", "epoch/hot_3020_type9", "epoch/concurrent_5021_type8"),
    *("epoch_trans/hot_3020_type8", "epoch2_trans/concurrent_5021_type8", "max/hot_3021_type7", "max/random_27_type7"),
    *("max_ins/concurrent_5021_type7", "max_del_win_ins/concurrent_5020_type7", "old/random_26_type6"),
)
WITH_ROLES = (
    *("epoch2/random_27_type7", "epoch2/concurrent_5021_type8", "epoch2_trans/hot_3020_type6"),
    "epoch2_trans/spanning_text_table_type7",
)

LOG_FAULTS: dict[faults.LogFault, set[CauseKind]] = {
    faults.other_value: {CauseKind.VALUES},
    faults.applied_removed: {CauseKind.FUNCTION, CauseKind.ROLE, CauseKind.FILES},
    faults.transaction_ids_off: {CauseKind.TRANSACTION_IDS},
    faults.apply_status_off: {CauseKind.APPLY_STATUS},
    faults.replica_updates_off: {CauseKind.REPLICA_UPDATES},
}


def run_of(configuration: Configuration, folder: Path, engine: str) -> RunDocument:
    """Resolve a run without steps, as users do."""
    check_log_files(configuration)
    return ENGINES[engine](make_run(configuration), Folder(str(folder / "out")))


def causes_of(run: RunDocument) -> set[CauseKind]:
    """Return the likely causes that a run names, those among which it cannot tell, too."""
    return {kind for cause in run.likely_causes for kind in cause.kinds}


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fault", LOG_FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_of_a_log(fault: faults.LogFault, seed: int, engine: str, tmp_path: Path) -> None:
    """Values altered, events missing, options off: it is noticed, and the sentence says what it may be."""
    chance = random.Random(f"{fault.__name__} {seed}")
    case = ConflictCase.load(CONFLICT / chance.choice(MANY))
    configuration = faults.with_log_fault(case.configuration(), fault, chance, tmp_path)
    run = run_of(configuration, tmp_path, engine)
    assert causes_of(run) & LOG_FAULTS[fault], case.path
    assert run.contradicted or fault is faults.replica_updates_off
    if fault in (faults.other_value, faults.applied_removed):
        assert run.summary.converged is None


@pytest.mark.parametrize("case", sorted((RECORDINGS / "everyday").glob("*/ddl_*")), ids=lambda case: case.name)
def test_definitions_that_change_raise_no_alarm(case: Path, tmp_path: Path) -> None:
    """What a statement makes of the rows of a table is no change without a transaction id."""
    run = run_of(ConflictCase.load(case).configuration(), tmp_path, "local")
    assert (run.likely_causes, run.contradicted) == ((), False)


@pytest.mark.parametrize("seed", range(3))
def test_a_missing_epoch_is_refused(seed: int, tmp_path: Path) -> None:
    """The other cluster shows that it applied the epoch."""
    chance = random.Random(seed)
    case = ConflictCase.load(CONFLICT / chance.choice(MANY))
    configuration = faults.with_log_fault(case.configuration(), faults.epoch_removed, chance, tmp_path)
    with pytest.raises(ConflictError, match="give all binlog files between the first and the last"):
        run_of(configuration, tmp_path, "reference")


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("name", MANY[:6])
@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        (faults.wrong_function, {CauseKind.FUNCTION, CauseKind.ROLE}),
        (faults.wrong_type, {CauseKind.BINLOG_TYPE}),
    ],
)
def test_a_wrong_declaration(
    fault: Callable[[Configuration], Configuration], kinds: set[CauseKind], name: str, engine: str, tmp_path: Path
) -> None:
    """The function, the binlog type or the key of the run file are not those of the binlogs."""
    configuration = fault(ConflictCase.load(CONFLICT / name).configuration())
    try:
        run = run_of(configuration, tmp_path, engine)
    except ConflictError:
        return
    assert run.contradicted
    assert causes_of(run) & kinds


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize("fault", [faults.other_key, faults.longer_key])
def test_a_wrong_key(fault: Callable[[Configuration], Configuration], name: str, engine: str, tmp_path: Path) -> None:
    """An update changes it, or an image does not have it: the run is refused, and event, table and column are named."""
    configuration = fault(ConflictCase.load(CONFLICT / name).configuration())
    place = r"binlog\.\d+, position \d+, \w+_ROWS_EVENT, table cft\.\w+, column x: "
    with pytest.raises(WrongKeyError, match=rf"{place}.* PRIMARY KEY \(.*x\) is not the key that the table had"):
        run_of(configuration, tmp_path, engine)


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("fault", [faults.other_key, faults.longer_key, faults.shorter_key])
def test_a_key_that_the_binlogs_name(
    fault: Callable[[Configuration], Configuration], engine: str, tmp_path: Path
) -> None:
    """With full metadata they name another one: the run is refused, where the table is first met."""
    told = faults.with_full_metadata(ConflictCase.load(CONFLICT / MANY[0]).configuration(), tmp_path)
    assert not run_of(told, tmp_path, engine).contradicted
    place = r"binlog\.\d+, position \d+, TABLE_MAP_EVENT, table cft\.\w+: "
    with pytest.raises(WrongKeyError, match=rf"{place}the definition says PRIMARY KEY \(.+\), the binlog PRIMARY KEY"):
        run_of(fault(told), tmp_path, engine)


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("name", [name for name in MANY if name.endswith("type8")])
def test_a_key_that_lacks_a_column(name: str, engine: str, tmp_path: Path) -> None:
    """Images that hold the key alone hold more than the declared one."""
    configuration = faults.shorter_key(ConflictCase.load(CONFLICT / name).configuration())
    run = run_of(configuration, tmp_path, engine)
    assert run.contradicted
    assert CauseKind.BINLOG_TYPE in causes_of(run)


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("name", WITH_ROLES)
@pytest.mark.parametrize(
    "roles",
    [(Role.SECONDARY, Role.PRIMARY), (Role.SECONDARY, Role.SECONDARY), (Role.PRIMARY, Role.PRIMARY)],
    ids=["exchanged", "two secondaries", "two primaries"],
)
def test_other_roles(roles: tuple[Role, Role], name: str, engine: str, tmp_path: Path) -> None:
    """What a primary or a secondary alone does is in the binlog of a cluster with another role."""
    run = run_of(faults.with_roles(ConflictCase.load(CONFLICT / name).configuration(), *roles), tmp_path, engine)
    assert run.contradicted
    assert run.summary.converged is None
    assert CauseKind.ROLE in causes_of(run)


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_marks_of_another_role_are_contradictions(engine: str, tmp_path: Path) -> None:
    """The rows are changed as derived, but those that A marks as reflected are B's to mark, by the roles declared."""
    case = ConflictCase.load(CONFLICT / "epoch2_trans/spanning_text_table_type7")
    run = run_of(faults.with_roles(case.configuration(), Role.SECONDARY, Role.PRIMARY), tmp_path, engine)
    assert run.summary.contradictions == {
        "A": {"cft.t1": {"derived CHANGED, shown CHANGED as reflected": 1}},
        "B": {"cft.t1": {"derived CHANGED, shown CHANGED not as reflected": 4}},
    }
    assert run.summary.converged is None
    assert [each.sentence for each in run.likely_causes] == [
        "A marked rows as reflected, which only a primary does: another role was in force (--primary A).",
        "B did not mark rows as reflected, as a primary does: another role was in force (--primary).",
    ]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_marks_of_another_function_are_contradictions(engine: str, tmp_path: Path) -> None:
    """No primary of NDB$EPOCH marks what it applies as reflected."""
    configuration = ConflictCase.load(CONFLICT / "epoch2/random_27_type7").configuration()
    rows = tuple(
        attrs.evolve(row, server_id=1, conflict_fn="NDB$EPOCH()")
        for row in configuration.replication
        if row.server_id != 2
    )
    run = run_of(attrs.evolve(configuration, replication=rows), tmp_path, engine)
    assert run.contradicted
    assert any(
        "which only a primary of NDB$EPOCH2 or NDB$EPOCH2_TRANS does" in each.sentence for each in run.likely_causes
    )


def test_swapped_sides_are_refused(tmp_path: Path) -> None:
    """Each file says which server wrote it."""
    configuration = faults.sides_swapped(ConflictCase.load(CONFLICT / MANY[0]).configuration())
    with pytest.raises(ConflictError, match="given as a binlog of A, and was written by the server of B"):
        run_of(configuration, tmp_path, "reference")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("b.000001", "b.000003"), "from b.000001 to b.000003; b.000002 is missing between them"),
        (("b.000009", "b.000010"), None),
        (("b.000002", "b.000001"), "give them in the order of their numbers"),
        (("one/b.000001", "two/b.000003"), r"from b.000001 to b.000003 \(.*one and .*two\); b.000002 is missing"),
        (("one/b.000001", "two/b.000002"), None),
        (
            ("one/b.000001", "two/b.000001"),
            "one/b.000001 and .*two/b.000001 are both given as b.000001 of A: they differ",
        ),
        (("b.000001", "c.000007"), None),
        (("first", "second"), None),
    ],
)
def test_files_are_numbered_without_gaps(names: tuple[str, ...], words: str | None, tmp_path: Path) -> None:
    """Files of one name have consecutive numbers, wherever they are, each once; other names say nothing."""
    configuration = ConflictCase.load(CONFLICT / MANY[0]).configuration()
    first, second = configuration.clusters
    first = with_files(first, *(tmp_path / name for name in names))
    changed = attrs.evolve(configuration, clusters=(first, second))
    if words is None:
        check_log_files(changed)
    else:
        with pytest.raises(ConflictError, match=words):
            check_log_files(changed)


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_row_slice_is_said(engine: str, tmp_path: Path) -> None:
    """Rows of other slices are in no binlog, so the result does not know of them."""
    configuration = ConflictCase.load(CONFLICT / MANY[0]).configuration()
    rows = tuple(
        attrs.evolve(row, binlog_row_slice_count=4, binlog_row_slice_id=1) for row in configuration.replication
    )
    run = run_of(attrs.evolve(configuration, replication=rows), tmp_path, engine)
    assert CauseKind.ROW_SLICE in causes_of(run)
    assert not run.contradicted


def test_epochs_that_are_too_many_to_look_at_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine gives up open decisions, not rows: these are the same, and the summary says what it left."""
    configuration = ConflictCase.load(RECORDINGS / "lives/live_2_epoch_type8").configuration()
    whole = run_of(configuration, tmp_path / "whole", "local")
    monkeypatch.setattr("conflict.runs.resolving.settling.MAX_OPEN_ROWS", 0)
    some = run_of(configuration, tmp_path / "some", "local")
    assert whole.summary.not_examined == 0
    assert some.summary.not_examined > 0
    assert some.summary.rows == whole.summary.rows
    assert [each.label for each in doubts_of(some.checks())] == ["Not looked at"]
