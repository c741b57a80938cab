"""Tasks spread over Spark."""

import pytest

from conflict.errors import ConfigurationError
from conflict.jobs import spark_runner
from conflict.jobs.runner import Runner


def test_every_task_gets_its_own_description(spark_run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there are more tasks than are pickled together; results are in the order of the tasks."""
    monkeypatch.setattr(spark_runner, "_TOGETHER", 2)
    seen: list[tuple[int, int]] = []
    done = spark_run(lambda task: task * task, [3, 4, 5, 6, 7], lambda done, total: seen.append((done, total)))
    assert done == [9, 16, 25, 36, 49]
    assert seen[-1] == (5, 5)


def test_an_error_of_a_task_is_raised_here(spark_run: Runner) -> None:
    """With its class and message."""

    def fail(task: str) -> None:
        raise ConfigurationError(task)

    with pytest.raises(ConfigurationError, match="this one"):
        spark_run(fail, ["this one"], lambda done, total: None)
