"""Tasks spread over Spark."""

import os
import signal
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conflict.config.arguments import no_progress
from conflict.errors import ConfigurationError, WorkerError
from conflict.history.tasks import Runner
from conflict.runs.ingest_job import outlines_by_tasks
from conflict.spark import spark_runner
from ndb_formats.columnar.file_outline import outlines_of
from tests.corpora import DEMO


def test_every_task_gets_its_own_description(spark_run: Runner) -> None:
    """Also where a Spark task runs several of them; results are in the order of the tasks."""
    seen: list[tuple[int, int]] = []
    tasks = range(3, 43)
    done = spark_run(lambda task: task * task, tasks, lambda done, total: seen.append((done, total)))
    assert done == [task * task for task in tasks]
    assert seen[-1] == (40, 40)


def test_tasks_go_in_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote session gets so many of them at a time that a message holds them; one at least."""
    monkeypatch.setattr(spark_runner, "_WAVE_BYTES", 10)
    assert spark_runner._wave([b"four", b"four", b"four"]) == [b"four", b"four"]
    assert spark_runner._wave([b"x" * 11, b"four"]) == [b"x" * 11]


def test_outlines(spark_run: Runner, tmp_path: Path) -> None:
    """Tasks make the same ones of binlogs as threads of this process; of what is none, too."""
    broken, other = tmp_path / "A.000001", tmp_path / "A.000002"
    broken.write_bytes((DEMO / "A.binlog.000001").read_bytes()[:-3])
    other.write_bytes(b"PAR1")
    files = [DEMO / "B.binlog.000001", broken, other]
    made, expected = outlines_by_tasks(spark_run, no_progress, files), outlines_of(files)
    for found, here in zip(made, expected, strict=True):
        assert (found.file, found.size, found.items, found.whole) == (here.file, here.size, here.items, here.whole)
        assert (found.starts.tolist(), found.end, str(found.error)) == (here.starts.tolist(), here.end, str(here.error))


def test_an_error_of_a_task_is_raised_here(spark_run: Runner) -> None:
    """With its class and message."""

    def fail(task: str) -> None:
        raise ConfigurationError(task)

    with pytest.raises(ConfigurationError, match="this one"):
        spark_run(fail, ["this one"], lambda done, total: None)


def test_a_killed_worker_is_replaced(spark_run: Runner, tmp_path: Path) -> None:
    """The task runs again in another one."""
    marker = tmp_path / "attempt"

    def die_once(task: int) -> int:
        if not marker.exists():
            marker.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        return task + 1

    assert spark_run(die_once, [1, 2, 3], lambda done, total: None) == [2, 3, 4]
    assert marker.exists()


def test_an_error_of_the_storage_that_passes_is_not_seen(spark_run: Runner, tmp_path: Path) -> None:
    """Spark tries the task again."""
    marker = tmp_path / "attempt"

    def fail_once(task: int) -> int:
        if not marker.exists():
            marker.write_text("")
            message = "503 SlowDown"
            raise OSError(message)
        return task + 1

    assert spark_run(fail_once, [1, 2, 3], lambda done, total: None) == [2, 3, 4]
    assert marker.exists()


def test_an_error_of_the_storage_that_stays(spark_run: Runner) -> None:
    """A sentence says what it is."""

    def fail(_: int) -> None:
        message = "503 SlowDown"
        raise OSError(message)

    with pytest.raises(WorkerError, match=r"^Spark gave up this job: .*503 SlowDown.*Run the command again$"):
        spark_run(fail, [1], lambda done, total: None)


def test_a_package_that_executors_lack(spark_run: Runner) -> None:
    """Another run would not help."""

    class Lacking:
        """Something whose module is not there when it is unpickled."""

        def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
            return import_module, ("surely_not_installed",)

    with pytest.raises(WorkerError, match="executors lacks surely_not_installed: install") as caught:
        spark_run(partial(max, Lacking()), [1], lambda done, total: None)
    assert "again" not in str(caught.value)


def test_a_file_that_an_executor_lacks(spark_run: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where executors are elsewhere, it is said that it is one of them that lacks it."""
    monkeypatch.setattr(spark_runner, "runs_here", lambda _: False)
    there = r"^the executor on .* cannot use a file: .*nothing.* under one path$"
    with pytest.raises(ConfigurationError, match=there):
        spark_run(lambda file: file.read_bytes(), [tmp_path / "nothing"], lambda done, total: None)


def test_workers_that_die_again_and_again(spark_run: Runner) -> None:
    """A sentence says so."""

    def die(_: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(WorkerError) as caught:
        spark_run(die, [1], lambda done, total: None)
    said = str(caught.value)
    assert said.startswith("Spark gave up this job: ")
    assert said.endswith(". Run the command again")
    assert "failed 4 times" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("master", "tasks", "parts"), [("spark://HOST:7077", 100, 25), ("local[2]", 100, 15), ("spark://HOST:7077", 3, 3)]
)
def test_a_stage_of_a_cluster_is_as_wide_as_its_work(master: str, tasks: int, parts: int) -> None:
    """Whatever number of cores it has at the moment, which is two here; a machine gets no more cores."""
    session: Any = SimpleNamespace(_sc=SimpleNamespace(master=master, defaultParallelism=2))
    assert spark_runner._parts(session, tasks) == parts
