"""Each command has its function in Python, with the same options and defaults, or a reason why not."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import conflict
from conflict.cli.app import COMMANDS
from conflict.cli.from_functions import help_of
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO

# Commands without a function.
WITHOUT = {
    "demo": "shows `resolve` on a recording",
    "warm-up": "is about the installation",
}
# Options that functions do not have: those of the terminal, of all commands or of one.
TERMINAL = {
    "json_file": "the function returns the document",
    "unpacked_mib": "the variable NDB_CONFLICT_UNPACKED_MIB",
    "zone": "moments have their offset",
    "context": "how the command was called",
}
NOT_HAD = {
    "explain": {
        "differences": "explain_differences",
        "top": "all",
        "parquet": "Story.to_arrow",
        "plot": "Story",
        **dict.fromkeys(("since", "last"), "of what is printed"),
    },
    "resolve": {"metrics": "the function `metrics`", "fail_if": "of the exit code", "quiet": "of what is printed"},
    "conflicts": dict.fromkeys(("form", "out"), "records"),
    "lost": {"top": "all"},
    "window": {"top": "all"},
    "conformance": {"force": "of the file with the document"},
    "repair": {"top": "all"},
    "decode": dict.fromkeys(
        (
            *("verbose", "form", "result_file", "force", "wide", "column_names"),
            *("print_table_metadata", "verify_binlog_checksum"),
            *("start_position", "stop_position", "database"),
        ),
        "of the text and the files that the command writes",
    ),
}
FORCELESS = {
    "audit",
    "check",
    "conflicts",
    "explain",
    "requirements",
    "check-replica",
    "logging",
    "diverge",
    "workers",
}  # their functions write no file
# Functions that have another default, and why.
OTHERWISE = {
    ("resolve", "out"): "a temporary folder",
    ("workload", "out"): "no file",
    ("sweep", "out"): "a temporary folder",
    ("init", "out"): "no file",
    ("conflicts", "top"): "all rows",
}


def function_of(name: str) -> Callable[..., object]:
    """Return the function of a command."""
    found: Callable[..., object] = getattr(conflict, name.replace("-", "_"))
    return found


def command_of(name: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of a command."""
    module, function = COMMANDS[name][0].split(":")
    return dict(inspect.signature(getattr(import_module(module), function)).parameters)


def plain(default: Any) -> Any:
    """Return a default as both write it: a list as text, and nothing as None."""
    if isinstance(default, Enum):
        return default.value
    if isinstance(default, Path):
        return str(default)
    if isinstance(default, list | tuple):
        return ",".join(default) or None
    return None if default == "" or default is inspect.Parameter.empty else default


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITHOUT])
def test_a_command_has_its_function(name: str) -> None:
    """With the names and the defaults of the command's options."""
    theirs = dict(inspect.signature(function_of(name)).parameters)
    left_out = {**TERMINAL, **NOT_HAD.get(name, {}), **({"force": "no file"} if name in FORCELESS else {})}
    ours = command_of(name)
    assert theirs.keys() - {"progress"} <= ours.keys()
    assert ours.keys() - theirs.keys() <= left_out.keys()
    for option in ours.keys() & theirs.keys():
        if (name, option) not in OTHERWISE:
            one = option == "table" and name == "decode"  # one table, where the command takes several
            assert one or plain(theirs[option].default) == plain(ours[option].default), option


@pytest.mark.parametrize("name", [*(name for name in COMMANDS if name not in WITHOUT), "explain_differences"])
def test_the_docstring_says_every_argument(name: str) -> None:
    """And nothing else: it is the help of the command."""
    function = function_of(name)
    assert help_of(function).keys() == inspect.signature(function).parameters.keys()


@pytest.mark.parametrize("name", [name for name in conflict.__all__ if inspect.isfunction(getattr(conflict, name))])
def test_a_signature_is_for_those_who_write_python(name: str) -> None:
    """How an argument is typed on a terminal stands beside the function, and no default is an address in memory."""
    shown = str(inspect.signature(getattr(conflict, name)))
    assert not [word for word in ("Annotated", "Typed", " at 0x") if word in shown]


def test_the_lists_of_exceptions_are_short_and_of_use() -> None:
    """Each names something that a command has, and a function has not."""
    assert WITHOUT.keys() <= COMMANDS.keys()
    assert not [name for name in WITHOUT if name in conflict.__all__]
    for name, options in NOT_HAD.items():
        assert options.keys() <= command_of(name).keys()
        assert not options.keys() & inspect.signature(function_of(name)).parameters.keys()


def test_what_dir_shows() -> None:
    """What users import, and nothing else."""
    assert dir(conflict) == sorted(conflict.__all__)
    assert {"resolve", "decode", "simulate", "workload", "sizes", "report", "conflicts"} <= set(dir(conflict))


@pytest.fixture(scope="module")
def resolved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the demo's result."""
    out = tmp_path_factory.mktemp("facade") / "result"
    conflict.resolve(DEMO / "run.toml", out=out, engine="local")
    return out


def test_a_list_of_binlogs_is_resolved() -> None:
    """As they are one by one."""
    files = [DEMO / f"{name}.binlog.000001" for name in "AB"]
    said = {"schema": DEMO / "schema.sql", "conflict_fn": {"cft.t*": "NDB$EPOCH()"}, "primary": "server1"}
    listed = conflict.resolve(files, **said)
    assert listed.summary == conflict.resolve(*files, **said).summary
    assert listed.summary.conflicts == 25  # recorded


def test_a_part_of_the_binlogs() -> None:
    """By epochs and by moments, as the command takes them; an unknown cluster is refused."""
    until = conflict.resolve(DEMO / "run.toml", stop_epoch={"A": 5317169512466}, engine="local")
    assert 0 < until.summary.changes < 90
    early = conflict.resolve(DEMO / "run.toml", stop_datetime="2026-11-20T16:00:17+00:00", engine="local")
    later = conflict.resolve(DEMO / "run.toml", stop_datetime="2026-11-20T21:00:17+05:00", engine="local")
    assert early.summary == later.summary
    assert 0 < early.summary.changes < 90
    with pytest.raises(conflict.ConfigurationError, match="the run has no cluster C; it has A and B"):
        conflict.resolve(DEMO / "run.toml", stop_epoch={"C": 1})
    with pytest.raises(conflict.ConfigurationError, match="stop_datetime noon: not a date and time"):
        conflict.resolve(DEMO / "run.toml", stop_datetime="noon")


def test_functions_answer_as_their_commands(resolved: Path, tmp_path: Path) -> None:
    """Conflicts, sizes and a report of both; decoding by the names of the command."""
    assert invoke("conflicts", resolved, "--json", tmp_path / "conflicts.json")[0] == 0
    assert conflict.conflicts(resolved) == json.loads((tmp_path / "conflicts.json").read_text())
    assert [row["table"] for row in conflict.conflicts(resolved, by="table", top=1)["by"]["table"]] == ["cft.t2"]
    binlog, schema = DEMO / "A.binlog.000001", DEMO / "schema.sql"
    assert invoke("sizes", binlog, "--schema", schema, "--json", tmp_path / "sizes.json")[0] == 0
    assert conflict.sizes(binlog, schema=schema) == json.loads((tmp_path / "sizes.json").read_text())
    page = conflict.report([resolved, tmp_path / "sizes.json"], out=tmp_path / "r.html")
    assert "of another log" not in page.read_text()
    with pytest.raises(conflict.ConfigurationError, match="exists"):
        conflict.report(resolved, out=page)
    rows = conflict.decode(binlog, "cft.t1", schema=schema, server_id=[1], stop_datetime="2026-11-20T16:00:17Z")
    assert 0 < rows.to_arrow().num_rows < conflict.decode(binlog, "cft.t1", schema=schema).to_arrow().num_rows
    with pytest.raises(conflict.ConfigurationError, match="by colour is not known"):
        conflict.conflicts(resolved, by="colour")


def test_a_model_is_learnt_simulated_and_swept(tmp_path: Path) -> None:
    """What is learnt says its binlogs, and goes to `simulate` as it is, or as a file."""
    learnt = conflict.workload(DEMO / "run.toml", out=tmp_path / "learnt.toml")
    assert [Path(each["path"]).name for each in learnt["learnt_from"]] == ["A.binlog.000001", "B.binlog.000001"]
    found = conflict.simulate(learnt, seeds=2)
    assert found.runs == conflict.simulate(tmp_path / "learnt.toml", seeds=2).runs
    assert found.settled
    grid = tmp_path / "sweep.toml"
    grid.write_text('model = "learnt.toml"\nseeds = 1\n[grid]\nlatency_ms = [0, 100]\n')
    swept = conflict.sweep(grid, out=tmp_path / "swept", workers=1)
    assert [run.unsettled_changes for run in swept.runs] == swept.results["unsettled_changes"].to_pylist() == [0, 0]
    again = conflict.sweep(learnt, {"latency_ms": [0, 100]}, seeds=1, workers=1)
    assert again.runs == swept.runs, "without a folder, of mappings"
