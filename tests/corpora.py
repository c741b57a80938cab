"""
Where recordings are: bundled with the tests, and in corpora that may be beside the checkout.

A test marked `corpus` needs one of those; where that is absent, the test does not run, and the summary of the test run
says so.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

RECORDINGS = Path(__file__).parent / "recordings"
DEMO = Path(__file__).parents[1] / "conflict" / "demo"
SHARED = Path(__file__).parents[2] / "shared"
NOT_RUN = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line("markers", "corpus(folder): needs ../shared/FOLDER; does not run where that is absent")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out the selected tests whose corpus is absent, and count them."""
    marks = {item: item.get_closest_marker("corpus") for item in items}
    absent = {item: mark.args[0] for item, mark in marks.items() if mark and not (SHARED / mark.args[0]).exists()}
    config.stash[NOT_RUN] = Counter(absent.values())
    if hasattr(config, "workeroutput"):
        config.workeroutput["not_run"] = dict(config.stash[NOT_RUN])
    if absent:
        config.hook.pytest_deselected(items=list(absent))
        items[:] = [item for item in items if item not in absent]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the counts of one of several processes that ran the tests; each collects all of them, if it does not die."""
    if hasattr(node, "workeroutput"):
        node.config.stash[NOT_RUN] = Counter(node.workeroutput.get("not_run", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the corpora that are absent."""
    absent = config.stash.get(NOT_RUN, Counter[str]())
    if absent:
        terminalreporter.section("not run", yellow=True)
    for folder, tests in absent.items():
        terminalreporter.line(f"{Path('../shared', folder)} is absent; tests not run: {tests}")


def schema_file(case: Path, folder: Path) -> Path:
    """Write the CREATE TABLE statements of a recording, of tables as they were at the start of its binlogs."""
    scenario = json.loads((case / "scenario.json").read_text("utf-8"))
    file = folder / "schema.sql"
    file.write_text(f"USE {scenario['database']};\n" + ";\n".join(table["create"] for table in scenario["tables"]))
    return file
