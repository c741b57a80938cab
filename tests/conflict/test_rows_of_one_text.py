"""Rows whose keys have the same text stay two rows, in all that reads a result."""

import json
import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import conflict
from conflict.errors import ConfigurationError
from conflict.operating.repairing.ended_run import ended_run
from conflict.operating.repairing.reading_lost import read_lost
from conflict.results.conflicts import ALL
from conflict.results.result import Result
from tests.conflict.cli.commands import invoke
from tests.conflict.keyed_logs import TWO_OF_ONE_TEXT, Key, KeyedLogs, one_contested, two_contested
from tests.examples import examples

ENGINES = ("reference", "local")
TEXT = "a=x, b=1, b=2"


def resolved(logs: KeyedLogs, folder: Path, engine: str) -> Result:
    """Resolve logs with an engine."""
    return conflict.resolve(logs.write(folder), out=folder / "result", engine=engine)


def columns(key: Key) -> dict[str, object]:
    """Return a key by its columns."""
    return dict(zip("ab", key, strict=False))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_story_is_of_one_row(engine: str, tmp_path: Path) -> None:
    """A rejected a change of the one row, and applied all of the other; the rejection is not told of that."""
    contested, quiet = TWO_OF_ONE_TEXT
    result = resolved(one_contested(contested, quiet), tmp_path, engine)
    stories = [conflict.explain(result, table="t", key=columns(key)) for key in (contested, quiet)]
    assert [story.key for story in stories] == [TEXT, TEXT]
    assert [[each.verdict for each in story.events if each.verdict] for story in stories] == [
        ["APPLIED", "REJECTED", "APPLIED"],
        ["APPLIED", "APPLIED"],
    ]
    ends = [{name: (end.row or {})["x"] for name, end in story.ends.items()} for story in stories]
    assert ends == [{"A": 5, "B": 5}, {"A": 4, "B": 4}]
    with pytest.raises(ConfigurationError, match="can be 2 keys; give it as JSON"):
        conflict.explain(result, table="t", key=TEXT)


def test_the_command_that_is_told_names_the_row(tmp_path: Path) -> None:
    """`resolve` and `explain` tell commands; a key that can be two is JSON there."""
    contested, quiet = TWO_OF_ONE_TEXT
    run = one_contested(contested, quiet).write(tmp_path)
    code, output = invoke("resolve", run, "--out", tmp_path / "result", "--engine", "reference")
    named = json.dumps(columns(contested))
    assert (code, f"--key '{named}'" in output) == (0, True)
    code, output = invoke("explain", tmp_path / "result", "--table", "t", "--key", named)
    assert (code, "A rejects B's update" in output) == (0, True)


@pytest.mark.parametrize("engine", ENGINES)
def test_conflicts_are_counted_apart(engine: str, tmp_path: Path) -> None:
    """Each of two rows has two conflicts; so it is of their texts, tables, times, lost changes and rows that differ."""
    result = resolved(two_contested(*TWO_OF_ONE_TEXT), tmp_path, engine)
    by_key = result.conflicts_by("key").to_pylist()
    assert [(each["key"], each["conflicts"]) for each in by_key] == [(TEXT, 2)] * 2
    assert len({each["identity"] for each in by_key}) == 2
    assert [each["keys"] for each in result.conflicts_by("table").to_pylist()] == [2, 2]
    assert [each["keys"] for each in result.conflicts_by("second").to_pylist()] == [2]
    assert [row[-1] for row in conflict.lost(result).by_table] == [2, 2]
    assert len(conflict.explain_differences(result)) == 2
    found = result.outcomes(table="t")["key_values"].to_pylist()
    assert {tuple(each.values()) for each in found} == set(TWO_OF_ONE_TEXT)
    document = json.loads(json.dumps(conflict.conflicts(result, by="key")))
    assert (document["keys"], len({each["identity"] for each in document["by"]["key"]})) == (2, 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_doubt_is_of_one_row(engine: str, tmp_path: Path) -> None:
    """In logs from the middle nobody knows whether A applied a change of the one row; the other one is known."""
    unknown, known = TWO_OF_ONE_TEXT
    logs = KeyedLogs(start="middle")
    logs.commit("A", (known, (1, 0), (5, 1)))
    logs.commit("B", (known, (1, 0), (5, 2)), (unknown, (1, 0), (3, 2)))
    logs.apply("A", 201)
    logs.apply("B", 101)
    result = resolved(logs, tmp_path, engine)
    end = ended_run(result, read_lost(result, ALL))
    ((name, identity),) = end.differing
    key = {row["identity"]: tuple(row["key_values"].values()) for row in result.outcomes(table="t").to_pylist()}
    assert (name, key[identity]) == ("d.t", known)
    assert end.doubt((name, identity)) is None
    ((_, other),) = end.may_differ
    assert (key[other], end.doubt(("d.t", other))) == (unknown, "whether the row exists on A is not known")
    plan = conflict.repair(result, {"*": "A"})
    assert ([each["key"] for each in plan.statements.to_pylist()], plan.proved) == ([TEXT], True)


KEYS = [
    ("a BIGINT UNSIGNED, PRIMARY KEY (a)", (2**63,), (2**64 - 1,)),
    ("a VARBINARY(8), b VARBINARY(8), PRIMARY KEY (a, b)", (b"a, b=", b""), (b"a", b", b=")),
    ("a DECIMAL(20,8), PRIMARY KEY (a)", (Decimal("0.00000001"),), (Decimal("-0.00000001"),)),
    (
        "a DATETIME(6), b TIME, PRIMARY KEY (a, b)",
        ("2026-11-20 00:00:00.000001", "-01:00:00"),
        ("0000-00-00 00:00:00.000000", "838:59:59"),
    ),
    ("a ENUM('x', 'x, b=x'), b CHAR(9) COLLATE utf8mb4_bin, PRIMARY KEY (a, b)", ("x, b=x", ""), ("x", "x, b=")),
    ("a VARCHAR(9) COLLATE utf8mb4_0900_ai_ci, b INT, PRIMARY KEY (a, b)", ("x\n'\"", 1), ("", 1)),
    # A unique key of columns that cannot be NULL serves where no key is declared.
    ("a VARCHAR(9) COLLATE utf8mb4_bin NOT NULL, b INT NOT NULL, UNIQUE KEY (b, a)", ("NULL", 0), ("null", 0)),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("definition", "contested", "quiet"), KEYS)
def test_keys_of_any_type(definition: str, contested: Key, quiet: Key, engine: str, tmp_path: Path) -> None:
    """A key is found by its values, typed as they are in results, and by what the story says names it."""
    result = resolved(one_contested(contested, quiet, definition), tmp_path, engine)
    assert result.run["contradicted_by_binlogs"] == 0
    for key, verdicts in ((contested, ["APPLIED", "REJECTED", "APPLIED"]), (quiet, ["APPLIED", "APPLIED"])):
        story = conflict.explain(result, table="t", key=columns(key))
        assert [each.verdict for each in story.events if each.verdict] == verdicts
        assert conflict.explain(result, table="t", key=story.given).identity == story.identity
        assert all(end.row is not None for end in story.ends.values())
    (found,) = {tuple(each.values()) for each in result.outcomes(table="t")["key_values"].to_pylist()}
    names = [name.strip() for name in definition.rpartition("(")[2].rstrip(")").split(",")]
    assert found == tuple(columns(contested)[name] for name in names)


def test_two_spellings_are_one_row(tmp_path: Path) -> None:
    """Under a collation that ignores case a row is found by any spelling of its key, and typed as it compares."""
    definition = "a VARCHAR(9) COLLATE utf8mb4_0900_ai_ci, PRIMARY KEY (a)"
    result = resolved(one_contested(("Ab",), ("c",), definition), tmp_path, "reference")
    stories = [conflict.explain(result, table="t", key=key) for key in ("ab", "AB", "a=äB")]
    assert len({story.identity for story in stories}) == 1
    assert result.outcomes(table="t")["key_values"].to_pylist() == [{"a": "ab"}]


TEXTS = st.text(st.sampled_from(" ,=ab'\"\\\n1"), max_size=8)


@pytest.mark.parametrize("engine", ENGINES)
@given(keys=st.tuples(st.tuples(TEXTS, TEXTS), st.tuples(TEXTS, TEXTS)))
@examples(4, long=20)
def test_any_keys_stay_distinct(engine: str, keys: tuple[Key, Key]) -> None:
    """Whatever two keys hold, counts, stories, lost changes, typed keys and repairs have two rows."""
    assume(keys[0] != keys[1])
    with tempfile.TemporaryDirectory() as folder:
        result = resolved(two_contested(*keys), Path(folder), engine)
        assert [each["conflicts"] for each in result.conflicts_by("key").to_pylist()] == [2, 2]
        assert {tuple(each.values()) for each in result.outcomes(table="t")["key_values"].to_pylist()} == {*keys}
        for key in keys:
            story = conflict.explain(result, table="t", key=columns(key))
            ends = [(end.row or {})["a"] for end in story.ends.values()]
            assert (len(story.events), ends) == (6, [key[0]] * 2)
            assert conflict.explain(result, table="t", key=story.given).identity == story.identity
        assert len({story.identity for story in conflict.explain_differences(result)}) == 2
        plan = conflict.repair(result, {"*": "B"})
        assert (len(plan.statements), len(plan.review), plan.proved) == (2, 0, True)
