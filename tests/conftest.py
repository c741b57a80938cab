"""One Spark session and one Hypothesis profile for all tests; corpora that are absent are reported."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from conflict.history.grid.folder import Folder
from conflict.history.tasks import Runner
from conflict.spark.session import spark_session
from conflict.spark.spark_runner import spark_runner
from ndb_formats.columnar.kernel_mode import Mode, set_mode
from tests.examples import EVERY_COMMIT, LONG, LONG_EXAMPLES

pytest_plugins = ["tests.corpora"]

settings.register_profile("ndb", deadline=None, print_blob=True, max_examples=EVERY_COMMIT)
settings.register_profile(LONG, settings.get_profile("ndb"), max_examples=LONG_EXAMPLES)
settings.load_profile("ndb")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let slow tests that repeat something random be run for as long as one likes."""
    parser.addoption("--interpreted", action="store_true", help="run kernels interpreted, and let no number overflow")
    parser.addoption("--times", type=int, default=20, help="how often tests of races, kills and full disks try")


def pytest_configure(config: pytest.Config) -> None:
    """Run kernels as it is asked for."""
    if config.getoption("--interpreted"):
        set_mode(Mode.INTERPRETED, overflow="raise")


@pytest.fixture(scope="session")
def times(pytestconfig: pytest.Config) -> int:
    """Return how often something random is tried."""
    return int(pytestconfig.getoption("--times"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Divide the tests, where several processes run them.

    One process runs all that use Spark, and starts one session. Another module is run by one process, so that what its
    tests share is made once.
    """
    for item in items:
        uses_spark = "spark" in getattr(item, "fixturenames", ())
        if uses_spark or item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("spark" if uses_spark else item.nodeid.partition("::")[0]))


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Iterator[Any]:
    """Show lone surrogates, which damaged text has, as escapes: a process that runs tests cannot send them."""
    return _sendable((yield))


def _sendable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {key: _sendable(each) for key, each in value.items()}
    return type(value)(map(_sendable, value)) if isinstance(value, list | tuple) else value


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Start Spark when the first test asks for it, and stop it after the last."""
    session = spark_session("2")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def spark_run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Run tasks on that session, whose attempts write below the folder of all tests."""
    return spark_runner(spark, [Folder(str(tmp_path_factory.getbasetemp()))])
