"""
What recorded servers counted and recorded of conflicts, in each form in which servers print it, beside the result.

Nothing differs that did not differ, and what is planted is found.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

import conflict
from conflict.cli.refusals import ExitCode
from conflict.config.run_file import GivenSchedule, RunFile
from conflict.errors import ConfigurationError
from conflict.judge.case import ConflictCase, RecordingKind, find_recordings
from conflict.operating.observing.differences import Compared, compare_observed
from conflict.operating.observing.observed import exceptions_tables, observed_in_files
from conflict.operating.observing.telling import tell_observed
from conflict.results.result import Result
from conflict.telling.terminal import telling_text
from tests.conflict.cli.commands import invoke
from tests.conflict.config.servers.clusters import answers_of, variables_of
from tests.conflict.config.servers.fake_server import FakeServer
from tests.conflict.operating.observing.printed import FORMS, batch, dump
from tests.corpora import RECORDINGS, SHARED

DUMP = "a dump"
SAMPLE = ("conflict/max/probe_type9", "conflict/epoch/hot_3020_type9", "conflict/epoch2_trans/probe_type6")
_BINARY = ("binary", "blob", "geometry", "vector")


@attrs.frozen
class Recorded:
    """A recording with its result, and what its servers show."""

    case: ConflictCase
    result: Result

    def files(self, folder: Path, form: str, shown: Mapping[str, Any]) -> Iterator[str]:
        """Write what servers show, as in `ConflictCase.recorded`, in a form; yield the texts for `--observed`."""
        for side, own in shown.items():
            place = folder / form / side
            place.mkdir(parents=True)
            write = FORMS.get(form, batch)
            nodes = {f"{side}:{server}": each for server, each in own.get("servers", {}).items()}
            for number, (label, counters) in enumerate(
                (nodes if len(nodes) > 1 else {side: own["status_difference"]}).items()
            ):
                file = place / f"status{number}.txt"
                file.write_text(write(("Variable_name", "Value"), [[*each] for each in counters.items()]))
                yield f"{label}={file}"
            used = exceptions_tables(self.result, side)
            for name, table in own["exceptions"].items():
                full_name = f"{self.case.databases[side]}.{name}"
                if full_name in used:
                    file = place / (f"{full_name}.sql" if form == DUMP else f"{full_name}.txt")
                    file.write_text(_printed(name, table, form))
                    yield f"{side}={file}"

    def compared(self, folder: Path, form: str, shown: Mapping[str, Any] | None = None) -> Compared:
        """Return what servers show beside the result."""
        files = [*self.files(folder, form, self.case.recorded if shown is None else shown)]
        return compare_observed(self.result, observed_in_files(files, self.result))


def _printed(name: str, table: Mapping[str, Any], form: str) -> str:
    names, kinds = table["columns"], table["types"]
    is_binary = [any(each in kind for each in _BINARY) for kind in kinds]
    if form == DUMP:
        rows = [
            [bytes.fromhex(v) if b and v is not None else v for v, b in zip(row, is_binary, strict=True)]
            for row in table["rows"]
        ]
        return dump(name, dict(zip(names, kinds, strict=True)), rows)
    rows = [
        [f"0x{v}" if b and v is not None else v for v, b in zip(row, is_binary, strict=True)] for row in table["rows"]
    ]
    return FORMS[form](names, rows)


def recorded(path: Path, folder: Path, engine: str = "reference") -> Recorded:
    """Resolve a recording by its binlogs alone."""
    case = ConflictCase.load(path)
    run = RunFile(path / "run.toml", case.configuration(), GivenSchedule(), ())
    return Recorded(case, conflict.resolve(run, out=folder / "result", engine=engine, policy="needs"))


@pytest.fixture(scope="module")
def hot(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A recording whose counters and exceptions rows are many."""
    return recorded(RECORDINGS / SAMPLE[1], tmp_path_factory.mktemp("hot"))


@pytest.mark.parametrize("name", SAMPLE)
def test_nothing_differs_that_did_not_differ(name: str, tmp_path: Path):
    """In no form."""
    found = recorded(RECORDINGS / name, tmp_path)
    for form in (*FORMS, DUMP):
        compared = found.compared(tmp_path, form)
        assert compared.counters, form
        assert not [each for each in compared.counters if each.is_unexplained], form
        assert not [each for each in compared.differences if not each.why], form


@pytest.mark.slow
@pytest.mark.corpus("conformance")
@pytest.mark.parametrize("part", ["conflict", "everyday", "operations"])
def test_nothing_differs_in_all_recordings(part: str, tmp_path: Path):
    """But where a channel was set back, of which binlogs show nothing; or where they contradict the result."""
    wrong, compared = [], 0
    for number, each in enumerate(find_recordings(SHARED / "conformance" / part)):
        if each.kind is RecordingKind.CONFLICT and not each.case.startswith("long"):  # which take minutes each
            form = (*FORMS, DUMP)[number % (len(FORMS) + 1)]
            engine = "local" if part == "operations" else "reference"
            found = recorded(each.path, tmp_path / str(number), engine)
            compared += 1
            contradicted = found.result.run["contradicted_by_binlogs"]
            if found.compared(tmp_path / str(number), form).unexplained and not contradicted:
                wrong.append(each.case)
    assert compared > 10
    assert not [case for case in wrong if "rewound" not in case]


def test_every_planted_counter_is_found(hot: Recorded, tmp_path: Path):
    """One more, or one less."""
    shown = hot.case.recorded
    for number, name in enumerate(name for name, value in shown["A"]["status_difference"].items() if value):
        for by in (-1, 1):
            counters = {**shown["A"]["status_difference"], name: shown["A"]["status_difference"][name] + by}
            planted = {**shown, "A": {**shown["A"], "status_difference": counters}}
            found = hot.compared(tmp_path / f"{number} {by}", "box", planted)
            assert [each.counter for each in found.counters if each.differs] == [name]
            assert found.differences == ()


@pytest.mark.parametrize("form", [*FORMS, DUMP])
def test_every_planted_row_is_found(hot: Recorded, tmp_path: Path, form: str):
    """A row that is missing, one too many, and one with another value in each column."""
    shown = hot.case.recorded
    name, table = next((name, each) for name, each in shown["A"]["exceptions"].items() if len(each["rows"]) > 2)
    rows = table["rows"]

    def found(*planted: list[object]) -> Compared:
        found.calls += 1
        own = {**shown["A"], "exceptions": {name: {**table, "rows": [*planted]}}}
        return hot.compared(tmp_path / str(found.calls), form, {**shown, "A": own})

    found.calls = 0
    (missing,) = found(*rows[:-1]).differences
    assert (missing.observed, missing.key) == (None, ", ".join(map(str, rows[-1][:4])))
    (more,) = found(*rows, [*rows[-1][:3], 99, *rows[-1][4:]]).differences
    assert (more.derived, more.key.split(", ")[-1]) == (None, "99")
    for place, column in enumerate(table["columns"][4:], 4):
        other = [*rows[0]]
        kind = table["types"][place]
        other[place] = "READ_ROW" if "READ_ROW" in kind else 7 if "int" in kind else "none of it"
        (changed,) = found(other, *rows[1:]).differences
        assert changed.observed is not None
        assert (changed.observed.keys(), changed.why) == ({column}, ""), column


def test_a_restart_of_numbers_is_one_thing(hot: Recorded, tmp_path: Path):
    """Rows that are the same but for their numbers are shown as such."""
    shown = hot.case.recorded
    name, table = next((name, each) for name, each in shown["A"]["exceptions"].items() if each["rows"])
    rows = [[*row[:3], row[3] + 100, *row[4:]] for row in table["rows"]]
    own = {**shown["A"], "exceptions": {name: {**table, "rows": rows}}}
    found = hot.compared(tmp_path, "batch", {**shown, "A": own})
    assert [[*(each.observed or {})] for each in found.differences] == [[table["columns"][3]]] * len(rows)
    assert any("uses up numbers" in note for note in found.notes)
    told = telling_text(tell_observed(found, 5))
    assert f"{len(rows)} rows with another number alone" in " ".join(told.split())
    assert "server:" not in told


def test_the_command(hot: Recorded, tmp_path: Path):
    """It ends with 0 where all is as derived, and with 1 where something is not; the document says the same."""
    files = [word for each in hot.files(tmp_path, "box", hot.case.recorded) for word in ("--observed", each)]
    code, said = invoke("conflicts", hot.result.folder.uri, *files)
    assert code == ExitCode.DONE, said
    assert "The servers show what the result derived: " in said
    counters = tmp_path / "more.txt"
    counters.write_text("Variable_name\tValue\nNdb_conflict_fn_epoch\t18446744073709551615\nUptime\t5\n")
    code, said = invoke(
        "conflicts", hot.result.folder.uri, "--observed", f"A={counters}", "--json", tmp_path / "found.json"
    )
    assert code == ExitCode.CONTRADICTED
    assert "18,446,744,073,709,551,615" in said
    document = json.loads((tmp_path / "found.json").read_text())["observed"]
    assert (document["unexplained"], document["counters"][0]["observed"]) == (1, 2**64 - 1)
    assert document == conflict.conflicts(hot.result, observed=f"A={counters}")["observed"]


def test_running_servers(hot: Recorded):
    """The same is asked of them; the server id says whose it is."""
    own = hot.case.recorded["A"]
    status = [{"Variable_name": name, "Value": str(value)} for name, value in own["status_difference"].items()]
    answers = answers_of(variables_of(1), **{"SHOW GLOBAL STATUS LIKE 'Ndb\\_%'": status})
    answers["SELECT @@GLOBAL.server_id AS id"] = [{"id": "1"}]
    for name, table in own["exceptions"].items():
        rows = [
            dict(zip(table["columns"], [None if v is None else str(v) for v in row], strict=True))
            for row in table["rows"]
        ]
        answers[f"SELECT * FROM `{hot.case.databases['A']}`.`{name}`"] = rows
    with FakeServer(answers).listening() as port:
        code, said = invoke("conflicts", hot.result.folder.uri, "--server", f"mysql://reader@127.0.0.1:{port}/")
        assert (code, "The servers show what the result derived" in said) == (ExitCode.DONE, True), said
        code, said = invoke("conflicts", hot.result.folder.uri, "--server", f"Z=mysql://reader@127.0.0.1:{port}/")
        assert (code, "the result has no cluster Z" in said) == (ExitCode.REFUSED, True), said


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("status.txt", "Variable_name\tValue\nNdb_conflict_fn_max\tmany\n", "a whole number is needed"),
        ("notes.txt", "a\tb\n1\t2\n", "name it after the exceptions table; there are"),
        ("notes.txt", "a,b,c\n1\n", "line 2 has 1 fields, the header line has 3; give what mysql -e"),
        ("notes.txt", "", "name it after the exceptions table"),
        ("dump.sql", "INSERT INTO other VALUES (1);", "it has no rows of an exceptions table of the cluster"),
        ("{}.txt", "a\tb\n1\t2\n", "have no column NDB$server_id, which is in its primary key"),
        ("{}.sql", "INSERT INTO `t1$EX` VALUES (1, 2);", "its INSERT statements name no columns"),
    ],
)
def test_files_that_show_nothing(hot: Recorded, tmp_path: Path, name: str, text: str, words: str):
    file = tmp_path / name.format("cft.t1$EX")
    file.write_text(text)
    with pytest.raises(ConfigurationError) as refused:
        conflict.conflicts(hot.result, observed=[f"A={file}"])
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [("status.txt", "give CLUSTER=FILE"), ("Z=status.txt", "the result has no cluster Z"), ("A=s3://b/f", "address")],
)
def test_what_is_not_understood(hot: Recorded, given: str, words: str):
    with pytest.raises(ConfigurationError, match=words):
        conflict.conflicts(hot.result, observed=given)
