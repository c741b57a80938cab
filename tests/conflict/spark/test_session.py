"""Where Spark runs."""

import pytest

from conflict.errors import ConfigurationError
from conflict.spark import session

CHOSEN_BY = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME")


class Builder:
    """In place of Spark's builder: starts nothing, and returns what it was given."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    def appName(self, name: str) -> "Builder":  # noqa: N802  # Spark's name
        return self.config("name", name)

    def master(self, master: str) -> "Builder":
        return self.config("master", master)

    def config(self, name: str, value: str) -> "Builder":
        self.given[name] = value
        return self

    def getOrCreate(self) -> "Builder":  # noqa: N802  # Spark's name
        return self

    @property
    def conf(self) -> dict[str, str]:
        """The settings of the session."""
        return self.given


class Sessions:
    """In place of `SparkSession`, with no active session."""

    def __init__(self) -> None:
        self.builder = Builder()

    def getActiveSession(self) -> None:  # noqa: N802  # Spark's name
        """There is none."""


@pytest.fixture
def no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user chose no place for Spark, and no session is active."""
    monkeypatch.setattr(session, "SparkSession", Sessions())
    for name in CHOSEN_BY:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "python")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")


@pytest.mark.usefixtures("no_choice")
def test_by_default_spark_runs_here() -> None:
    """A local master, with settings that only suit one."""
    given = session.spark_session("3").conf
    assert (given["master"], given["spark.driver.host"]) == ("local[3,4]", "127.0.0.1")


@pytest.mark.usefixtures("no_choice")
@pytest.mark.parametrize("name", CHOSEN_BY)
def test_spark_runs_where_the_user_chose(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is set that would override the user."""
    monkeypatch.setenv(name, "somewhere")
    assert session.spark_session().conf == {"name": "ndb-conflict"}


@pytest.mark.usefixtures("no_choice")
def test_a_place_that_cannot_be_reached_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of Spark becomes one that the command line shows in one line."""

    def fail(builder: Builder) -> None:
        raise OSError(str(builder.given))

    monkeypatch.setenv("SPARK_REMOTE", "sc://nowhere")
    monkeypatch.setattr(Builder, "getOrCreate", fail)
    with pytest.raises(ConfigurationError, match=r"not be started where it is configured to run: .*ndb-conflict"):
        session.spark_session()
