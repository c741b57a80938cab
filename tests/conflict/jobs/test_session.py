"""Where Spark runs, and tasks spread over it."""

import pytest

from conflict.errors import ConfigurationError
from conflict.jobs import session
from conflict.jobs.runner import Runner

TOLD_BY = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME")


class Builder:
    """Stands for Spark's builder: starts nothing, and tells what it was given."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    def appName(self, name: str) -> "Builder":  # noqa: N802  # Spark's name
        return self.config("name", name)

    def master(self, master: str) -> "Builder":
        return self.config("master", master)

    def config(self, name: str, value: str) -> "Builder":
        self.given[name] = value
        return self

    def getOrCreate(self) -> dict[str, str]:  # noqa: N802  # Spark's name
        return self.given


class Sessions:
    """Stands for `SparkSession` where none is active."""

    def __init__(self) -> None:
        self.builder = Builder()

    def getActiveSession(self) -> None:  # noqa: N802  # Spark's name
        """There is none."""


@pytest.fixture
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing tells Spark where to run, and none runs."""
    monkeypatch.setattr(session, "SparkSession", Sessions())
    for name in TOLD_BY:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "python")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")


@pytest.mark.usefixtures("untold")
def test_spark_that_is_told_nothing_runs_here() -> None:
    """A local master, with settings that only suit one."""
    given = session.spark_session("3")
    assert (given["master"], given["spark.driver.host"]) == ("local[3]", "127.0.0.1")


@pytest.mark.usefixtures("untold")
@pytest.mark.parametrize("name", TOLD_BY)
def test_spark_runs_where_it_is_told_to(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is set that would win over what users say."""
    monkeypatch.setenv(name, "somewhere")
    assert session.spark_session() == {"name": "ndb-conflict"}


@pytest.mark.usefixtures("untold")
def test_a_place_that_cannot_be_reached_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever Spark says becomes an error that the command line shows in one line."""

    def fail(builder: Builder) -> None:
        raise OSError(str(builder.given))

    monkeypatch.setenv("SPARK_REMOTE", "sc://nowhere")
    monkeypatch.setattr(Builder, "getOrCreate", fail)
    with pytest.raises(ConfigurationError, match=r"Spark could not be started where it is told to run: .*ndb-conflict"):
        session.spark_session()


def test_every_task_gets_its_own_description(spark_run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there are more tasks than are pickled together; results are in the order of the tasks."""
    monkeypatch.setattr(session, "_TOGETHER", 2)
    seen: list[tuple[int, int]] = []
    done = spark_run(lambda task: task * task, [3, 4, 5, 6, 7], lambda done, total: seen.append((done, total)))
    assert done == [9, 16, 25, 36, 49]
    assert seen[-1] == (5, 5)


def test_an_error_of_a_task_is_raised_here(spark_run: Runner) -> None:
    """With its class and what it says."""

    def fail(task: str) -> None:
        raise ConfigurationError(task)

    with pytest.raises(ConfigurationError, match="this one"):
        spark_run(fail, ["this one"], lambda done, total: None)
