"""Which engine is chosen, and what is said of it."""

from pathlib import Path

import pytest

from conflict.config.run_file import load_run_file
from conflict.runs import engine_choice
from conflict.runs.engine_choice import choose_engine, local_memory
from conflict.surroundings import free_memory
from tests.corpora import DEMO

GIB = 1 << 30


def binlogs_of(size: int, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let the demo's binlogs have a size, in a file that takes no room."""
    path = folder / "binlog"
    with path.open("wb") as file:
        file.truncate(size)
    configuration = load_run_file(DEMO / "run.toml").configuration
    monkeypatch.setattr(type(configuration), "files", [path])


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user's shell, in which nothing configures Spark, of a machine with Java."""
    for name in ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAVA_HOME", "java")


@pytest.mark.parametrize(
    ("size", "free", "engine", "said"),
    [
        (300 << 20, 8 * GIB, "local", "about 1.0 GiB of memory for 300 MiB of binlogs"),
        (300 << 20, GIB, "spark", "the local engine would take about 1.0 GiB of memory"),
        (40 * GIB, 8 * GIB, "spark", "and 8.0 GiB are free"),
        (40 * GIB, None, "local", "of memory for 40.0 GiB of binlogs"),
    ],
)
def test_one_machine_is_local_where_there_is_memory(
    size: int, free: int | None, engine: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the size; where the system does not say what memory it has, too."""
    binlogs_of(size, monkeypatch, tmp_path)
    monkeypatch.setattr(engine_choice, "free_memory", lambda: free)
    choice = choose_engine(load_run_file(DEMO / "run.toml").configuration)
    assert choice.engine == engine
    assert said in choice.reason


def test_without_java_it_is_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark could not even start."""
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    binlogs_of(40 * GIB, monkeypatch, tmp_path)
    monkeypatch.setattr(engine_choice, "free_memory", lambda: GIB)
    choice = choose_engine(load_run_file(DEMO / "run.toml").configuration)
    assert choice.engine == "local"
    assert choice.reason.startswith("there is no Java for Spark, though the local engine would take about ")


@pytest.mark.parametrize("name", ["PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR"])
def test_who_configures_spark_gets_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the binlogs are."""
    monkeypatch.setenv(name, "something")
    choice = choose_engine(load_run_file(DEMO / "run.toml").configuration)
    assert (choice.engine, choice.reason) == ("spark", f"{name} is set")


@pytest.mark.parametrize(("size", "seen"), [(99 << 20, 465 << 20), (394 << 20, 917 << 20), (1573 << 20, 2324 << 20)])
def test_the_estimate_covers_what_was_seen(size: int, seen: int) -> None:
    """Bytes of binlogs, and most bytes of anonymous memory of `resolve`, for 1, 4 and 16 million row changes."""
    assert seen < local_memory(size) < 2 * seen


def test_free_memory_is_the_least_that_is_said(tmp_path: Path) -> None:
    """That of the machine, or of a container with a limit; pages of files, which make room, are free."""
    meminfo, group = tmp_path / "meminfo", tmp_path / "group"
    assert free_memory(meminfo, group) is None
    meminfo.write_text("MemTotal:       24000000 kB\nMemAvailable:   2097152 kB\n")
    assert free_memory(meminfo, group) == 2 * GIB
    group.mkdir()
    (group / "memory.max").write_text(f"{GIB}\n")
    (group / "memory.stat").write_text(f"anon {GIB // 4}\nfile {GIB // 2}\n")
    assert free_memory(meminfo, group) == GIB - GIB // 4
    (group / "memory.max").write_text("max\n")
    assert free_memory(meminfo, group) == 2 * GIB
