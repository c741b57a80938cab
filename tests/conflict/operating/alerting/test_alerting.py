"""Figures for Prometheus and conditions for cron, on the demo: read by a small parser of the documented format."""

import re
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import conflict
from conflict.cli.refusals import ExitCode
from conflict.errors import ConfigurationError
from conflict.operating.alerting.conditions import FIGURES, Condition
from conflict.operating.alerting.metrics import METRICS, Sample, metric_text
from conflict.results.result import Result
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO

Labels = frozenset[tuple[str, str]]
_NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def parsed(text: str) -> dict[str, dict[Labels, float]]:
    """
    Return metrics by name and labels.

    Source: Prometheus, "Exposition formats", text-based format: HELP and TYPE precede all samples of a metric, which
    stand together; a label value escapes backslash, double quote and line feed; the last line ends in a line feed.
    """
    assert text.endswith("\n")
    found: dict[str, dict[Labels, float]] = {}
    helped, typed = set[str](), dict[str, str]()
    for line in text[:-1].split("\n"):
        comment = re.fullmatch(rf"# (HELP|TYPE) ({_NAME}) (.*)", line)
        if comment is not None:
            name = comment[2]
            assert name not in found
            if comment[1] == "HELP":
                assert name not in helped
                helped.add(name)
            else:
                assert name not in typed
                typed[name] = comment[3]
            continue
        sample = re.fullmatch(rf'({_NAME})(?:\{{((?:{_NAME}="(?:[^"\\\n]|\\["\\n])*",?)*)\}})? (\S+)', line)
        assert sample is not None, line
        name, labels, value = sample.groups()
        assert name in helped
        assert typed[name] == "gauge"
        assert not found or name == list(found)[-1] or name not in found
        pairs = re.findall(rf'({_NAME})="((?:[^"\\]|\\.)*)"', labels or "")
        key = frozenset((each, re.sub(r"\\.", lambda part: _ESCAPES[part[0]], text)) for each, text in pairs)
        assert key not in found.setdefault(name, {})
        found[name][key] = float(value)
    return found


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(0, 2**53), min_size=1, max_size=4))
def test_any_name_is_a_label(values: Mapping[str, int]) -> None:
    """Also with quotes, backslashes and line ends."""
    text = metric_text("x", "Help.", [Sample(value, {"table": name}) for name, value in values.items()])
    expected = {frozenset({("table", name)}): float(value) for name, value in values.items()}
    assert parsed(text) == {"ndb_conflict_x": expected}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The result of the demo."""
    out = tmp_path_factory.mktemp("alerting") / "result"
    return conflict.resolve(DEMO / "run.toml", out=out, engine="reference")


def test_figures_are_those_of_other_commands(result: Result) -> None:
    """Conflicts are 25, lost changes 33, and one row differs."""
    found = parsed(conflict.metrics(result))
    assert set(found) <= {f"ndb_conflict_{metric.name}" for metric in METRICS}
    conflicts = {key: value for key, value in found["ndb_conflict_conflicts"].items() if value}
    rejected = Counter((row["applier"], row["table"], row["cause"]) for row in result.conflicts.to_pylist())
    names = ("applier", "table", "cause")
    assert conflicts == {frozenset(zip(names, key, strict=True)): count for key, count in rejected.items()}
    assert sum(conflicts.values()) == 25
    lost = found["ndb_conflict_lost_changes"]
    assert sum(value for key, value in lost.items() if ("how", "rejected") in key) == 23
    assert sum(value for key, value in lost.items() if ("how", "overwritten") in key) == 10
    assert sum(found["ndb_conflict_differing_rows"].values()) == 1
    last = {dict(key)["applier"]: value for key, value in found["ndb_conflict_last_applied_epoch"].items()}
    assert last == {name: max(result.applied_epochs(name)["source_epoch"].to_pylist()) for name in result.clusters}


def test_the_lag_is_that_of_the_window(result: Result, tmp_path: Path) -> None:
    """In seconds, by direction; without binlogs it is not known."""
    found = parsed(conflict.metrics(result))["ndb_conflict_lag_seconds"]
    channels = conflict.window(result).document()["channels"]
    quantiles = {"p50": "0.5", "p99": "0.99", "max": "1"}
    assert {(each["applier"], each["source"]) for each in channels} == {("A", "B"), ("B", "A")}
    assert found == {
        frozenset({("applier", each["applier"]), ("source", each["source"]), ("quantile", quantile)}): (
            pytest.approx(each["applied_ms"][share] / 1000)
        )
        for each in channels
        for share, quantile in quantiles.items()
    }
    shutil.copytree(DEMO, tmp_path / "demo")
    alone = conflict.resolve(tmp_path / "demo" / "run.toml", out=tmp_path / "result", engine="reference")
    shutil.rmtree(tmp_path / "demo")
    assert "ndb_conflict_lag_seconds" not in parsed(conflict.metrics(alone))


def test_what_is_not_known_has_no_sample(result: Result) -> None:
    """And a condition on it holds, because nobody knows."""
    unknown = attrs.evolve(result, run={**result.run, "differing_rows": {"cft.t1": None, "cft.t2": 0}})
    assert parsed(conflict.metrics(unknown))["ndb_conflict_differing_rows"] == {frozenset({("table", "cft.t2")}): 0}
    assert Condition.parse("differing > 0").holds(unknown) == "differing > 0: differing is not known."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lost > 0", "lost > 0: lost is 33."),
        ("lost>=33", "lost >= 33: lost is 33."),
        ("lost > 33", None),
        ("conflicts == 25", "conflicts == 25: conflicts is 25."),
        ("conflicts != 25", None),
        (" differing <= 1 ", "differing <= 1: differing is 1."),
        ("differing < 1", None),
        ("skipped > 0", None),
        ("contradictions > 0", None),
        ("open < 1", "open < 1: open is 0."),
    ],
)
def test_conditions(result: Result, text: str, said: str | None) -> None:
    """Each figure and each comparison."""
    assert Condition.parse(text).holds(result) == said


@pytest.mark.parametrize("text", ["lost", "lost > x", "rows > 0", "lost > 0 or open > 0", "lost = 0", "lost > -1", ""])
def test_conditions_that_are_none(text: str) -> None:
    """They are refused with all that is known."""
    with pytest.raises(ConfigurationError, match="not understood") as caught:
        Condition.parse(text)
    assert all(name in str(caught.value) for name in FIGURES)


def test_every_night(tmp_path: Path) -> None:
    """Quiet, with figures and a condition; the figures replace those of the night before."""
    figures = tmp_path / "ndb.prom"
    figures.write_text("old")
    command = ("resolve", DEMO / "run.toml", "--engine", "reference", "--out", tmp_path / "result", "--force")
    holding = ("--fail-if", "lost > 100", "--fail-if", "differing > 0")
    assert invoke(*command, "--quiet", "--metrics", figures, *holding) == (
        *(ExitCode.CONDITION_HOLDS, "differing > 0: differing is 1."),
    )
    found = parsed(figures.read_text("utf-8"))
    assert found["ndb_conflict_run_seconds"].keys() == found["ndb_conflict_run_time_seconds"].keys() == {frozenset()}
    assert sum(found["ndb_conflict_conflicts"].values()) == 25
    assert {path.name for path in tmp_path.iterdir()} == {"ndb.prom", "result"}
    assert invoke(*command, "--quiet", "--fail-if", "lost > 100") == (ExitCode.DONE, "")


def test_refused_before_the_work(tmp_path: Path) -> None:
    """A condition that is none, and a file in no folder; errors are printed also if it is quiet."""
    out = tmp_path / "result"
    for options, said in (
        (("--fail-if", "lots > 0"), "not understood"),
        (("--metrics", tmp_path / "no" / "x.prom"), "there is no folder"),
    ):
        code, output = invoke("resolve", DEMO / "run.toml", "--out", out, "--quiet", *options)
        assert code == ExitCode.REFUSED
        assert said in output
        assert not out.exists()
