"""What holds for the report of any configuration."""

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from conflict.checking.check import check_configuration
from conflict.checking.findings import Code, Severity, merged
from conflict.checking.reasons import rules_out
from conflict.checking.requirements import Status, requirements
from conflict.checking.subject import subject_of
from conflict.config.arguments import DeploymentPolicy
from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.rules.replication_table import ReplicationRow, Role
from conflict.rules.table_setup import set_up
from ndb_formats.rules.update_format import ServerOptions
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema
from tests.examples import examples

CREATION = {f"NDB-E00{number}" for number in range(1, 6)}
TABLES = (
    "CREATE TABLE d.t (k INT PRIMARY KEY, x INT UNSIGNED NOT NULL, v INT) ENGINE=NDB;",
    "CREATE TABLE d.u (k VARCHAR(9), x BIGINT UNSIGNED, b TEXT, PRIMARY KEY (k), UNIQUE (x)) ENGINE=NDB;",
    "CREATE TABLE d.hidden (k INT, x INT UNSIGNED, FOREIGN KEY own (k) REFERENCES t (k)) ENGINE=NDB;",
    (
        "CREATE TABLE d.`t$EX` (a INT UNSIGNED, b INT UNSIGNED, c BIGINT UNSIGNED, d INT UNSIGNED, k INT NOT NULL, "
        "PRIMARY KEY (a, b, c, d)) ENGINE=NDB;"
    ),
    "CREATE TABLE d.`u$ex` (a INT) ENGINE=NDB;",
)
functions = st.sampled_from(
    ["NDB$OLD(x)", "NDB$MAX(v)", "NDB$MAX_INS(x)", "NDB$EPOCH(2)", "NDB$EPOCH_TRANS()", "NDB$EPOCH2()", "NDB$X"]
)
rows = st.builds(
    ReplicationRow,
    st.sampled_from(["d", "%", "e"]),
    st.sampled_from(["t", "u", "%", "h_dden"]),
    st.sampled_from([0, 1, 2, 3]),
    st.none() | st.integers(0, 10),
    st.none() | functions,
)
switches = st.sampled_from(["ON", "OFF"])
names = ("log_bin", "ndb_log_bin", "log_replica_updates", "ndb_log_apply_status", "ndb_log_exclusive_reads")


@cache
def schema(chosen: tuple[bool, ...]) -> Schema:
    """Return the chosen tables."""
    return parse_schema("\n".join(text for text, taken in zip(TABLES, chosen, strict=True) if taken))


schemas = st.tuples(*[st.booleans()] * len(TABLES)).map(schema)


def clusters(name: str, server_id: int) -> st.SearchStrategy[ClusterConfiguration]:
    """Return a cluster with any settings."""
    return st.builds(
        ClusterConfiguration,
        st.just(name),
        st.just((LoggingServer(server_id),)),
        st.sampled_from(Role),
        st.builds(ServerOptions, st.booleans(), st.booleans(), st.booleans()),
        st.none() | st.booleans(),
        schema=st.none() | schemas,
        variables=st.none() | st.fixed_dictionaries({}, optional=dict.fromkeys(names, switches)),
    )


configurations = st.builds(
    Configuration, st.tuples(clusters("A", 1), clusters("B", 2)), schemas, st.lists(rows, max_size=4).map(tuple)
)


@examples(37, long=150)
@given(configurations)
def test_the_report_of_any_configuration(configuration: Configuration) -> None:
    """Refused tables are those that the server refuses; no sentence stands twice; places are those that there are."""
    report = check_configuration(configuration)
    refused = {
        (cluster.name, name)
        for cluster in configuration.clusters
        for name, setup in set_up(
            configuration.schema_of(cluster), configuration.replication, cluster.server_id, cluster.options
        ).items()
        if setup.refusal is not None
    }
    places = [place for finding in report.findings for place in finding.places if finding.code in CREATION]
    assert {(place.cluster, place.table) for place in places} == refused
    assert len(places) == len(refused)
    assert {(each.cluster, each.table) for each in report.tables if not each.created} == refused
    said = [(finding.code, finding.sentence, finding.server, str(finding.fix)) for finding in report.findings]
    assert len(said) == len({*said})
    assert merged(report.findings) == report.findings
    assert {place.cluster for finding in report.findings for place in finding.places} <= {"A", "B", ""}
    severities = [list(Severity).index(finding.severity) for finding in report.findings]
    assert severities == sorted(severities)
    assert all(finding.sentence.endswith(".") and str(finding.fix) for finding in report.findings)


@examples(25, long=100)
@given(configurations.filter(lambda each: all(cluster.schema is None for cluster in each.clusters)))
def test_what_requirements_refuse_is_refused(configuration: Configuration) -> None:
    """Where `requirements` says that a function cannot work, a finding says so on that table."""
    report = check_configuration(configuration, DeploymentPolicy.NEEDS)
    found = {(place.cluster, place.table) for finding in report.findings for place in finding.places}
    refused = {(place.cluster, place.table) for finding in report.of(Severity.REFUSED) for place in finding.places}
    # A finding that the server does not refuse, and that nothing arrives by, is a warning here.
    warned = {Code.NO_KEY, Code.NOT_LOGGED}
    subject = subject_of(configuration, DeploymentPolicy.NEEDS)
    for placed in subject.tables:
        if placed.setup.refusal is not None:
            assert (placed.cluster.name, placed.table.full_name) in refused
    for arrival in subject.arrivals:
        place = (arrival.here.cluster.name, arrival.here.table.full_name)
        answer = requirements(arrival.deployment, DeploymentPolicy.NEEDS)
        if answer.status is not Status.USABLE:
            assert place in found
        kinds = {reason.kind for reason in answer.reasons if rules_out(reason)}
        if kinds - warned:
            assert place in refused, kinds
