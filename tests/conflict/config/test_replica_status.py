"""Filters of channels: what SHOW REPLICA STATUS prints, and options for one channel."""

from pathlib import Path

import pytest

from conflict.config.configuration import Configuration
from conflict.config.replica_status import ReplicaChannel, parse_replica_status
from conflict.config.run_file import load_run_file
from conflict.errors import ConfigurationError
from conflict.rules.replication_filter import ReplicationFilter, channels_of, options_of

VERTICAL = """mysql> SHOW REPLICA STATUS\\G
*************************** 1. row ***************************
             Replica_IO_State: Waiting for source to send event
                  Source_Host: 127.0.0.1
              Source_Log_File: binlog.000002
           Replicate_Do_DB: shop,stock
          Replicate_Ignore_DB:
           Replicate_Do_Table:
       Replicate_Ignore_Table: shop.a,shop.b
      Replicate_Wild_Do_Table:
  Replicate_Wild_Ignore_Table: shop.log%
                   Last_Error: one: two
three
             Source_Server_Id: 2
    Replicate_Ignore_Server_Ids: 3, 7
         Replicate_Rewrite_DB: (shop_b,shop),(x,y)
                 Channel_Name:
*************************** 2. row ***************************
                  Source_Host: other
              Replicate_Do_DB:
             Source_Server_Id: 9
                 Channel_Name: reports
2 rows in set (0.00 sec)
"""
FIRST = ReplicaChannel(
    "",
    2,
    ReplicationFilter(
        do_db=("shop", "stock"),
        ignore_table=("shop.a", "shop.b"),
        wild_ignore_table=("shop.log%",),
        rewrite_db=(("shop_b", "shop"), ("x", "y")),
    ),
    frozenset({3, 7}),
    host="127.0.0.1",
)
SECOND = ReplicaChannel("reports", 9, ReplicationFilter(), host="other")


def in_columns(separator: str) -> str:
    """Return the same rows as a header line and a line per row."""
    names = "Source_Host Replicate_Do_DB Replicate_Ignore_Table Replicate_Wild_Ignore_Table Source_Server_Id"
    names += " Replicate_Ignore_Server_Ids Replicate_Rewrite_DB Channel_Name"
    first = ["127.0.0.1", "shop,stock", "shop.a,shop.b", "shop.log%", "2", "3, 7", "(shop_b,shop),(x,y)", ""]
    second = ["other", "", "", "", "9", "", "", "reports"]
    return "\n".join(separator.join(row) for row in (names.split(), first, second)) + "\n"


def test_lines_below_each_other() -> None:
    """As the client prints it with \\G, whatever stands around it."""
    assert parse_replica_status(VERTICAL) == (FIRST, SECOND)


def test_the_older_names() -> None:
    """SHOW SLAVE STATUS."""
    older = VERTICAL.replace("Source_", "Master_").replace("Replica_IO", "Slave_IO")
    assert parse_replica_status(older) == (FIRST, SECOND)


def test_a_line_per_row() -> None:
    """With tabs, and as a box."""
    assert parse_replica_status(in_columns("\t")) == (FIRST, SECOND)
    rows = in_columns(" | ").splitlines()
    box = "\n".join(["+----+", *(f"| {row} |" for row in rows), "+----+"])
    assert parse_replica_status(box) == (FIRST, SECOND)


def test_another_text_is_refused() -> None:
    """The message says what is wanted."""
    with pytest.raises(ConfigurationError, match="it has no Replicate_Do_DB; give what SHOW REPLICA STATUS prints"):
        parse_replica_status("Variable_name\tValue\nserver_id\t1\n")


def test_options_for_a_channel() -> None:
    """Of each option, a channel has its own values or else those for all channels."""
    options = {"replicate_do_db": ["a", "x:b", ":c"], "replicate_ignore_table": ["a.t"]}
    assert channels_of(options) == ("x", "")
    assert options_of(options, "x") == {"replicate_do_db": ("b",), "replicate_ignore_table": ("a.t",)}
    assert options_of(options, "") == {"replicate_do_db": ("c",), "replicate_ignore_table": ("a.t",)}
    assert options_of(options, "y") == {"replicate_do_db": ("a",), "replicate_ignore_table": ("a.t",)}


def loaded(folder: Path, a: str, b: str = "", more: str = "") -> Configuration:
    """Return a run file with entries for its clusters."""
    text = f"[clusters.A]\nserver_id = 1\n{a}\n[clusters.B]\nserver_id = 2\n{b}\n{more}"
    (folder / "run.toml").write_text(text)
    return load_run_file(folder / "run.toml", binlogs=False).configuration


def test_a_run_file_takes_the_channel_from_the_other_cluster(tmp_path: Path) -> None:
    """By the server id of its source; filters of the run file count before it, those of variables do not."""
    (tmp_path / "status.txt").write_text(VERTICAL)
    (tmp_path / "my.cnf").write_text("[mysqld]\nserver_id=1\nreplicate-ignore-db=old\n")
    a, _ = loaded(tmp_path, 'replica_status = "status.txt"\nvariables = "my.cnf"').clusters
    assert (a.filter_of("B"), a.ignored) == (FIRST.filter, {"B": frozenset({3, 7})})
    a, _ = loaded(tmp_path, 'replica_status = "status.txt"\nreplicate_do_db = ["own"]').clusters
    assert a.filter_of("B").do_db == ("own",)
    assert a.filter_of("B").rewrite_db == FIRST.filter.rewrite_db


def test_a_server_without_a_channel(tmp_path: Path) -> None:
    """As the client says it; filters of its variables count then, and nothing is known of one that is not given."""
    (tmp_path / "status.txt").write_text("Empty set (0.00 sec)\n")
    (tmp_path / "my.cnf").write_text("[mysqld]\nserver_id=1\nreplicate-ignore-db=old\n")
    a, b = loaded(tmp_path, 'replica_status = "status.txt"\nvariables = "my.cnf"').clusters
    assert (a.has_channels, b.has_channels) == (False, None)
    assert a.filter_of("B").ignore_db == ("old",)
    (tmp_path / "status.txt").write_text(VERTICAL)
    assert loaded(tmp_path, 'replica_status = "status.txt"').clusters[0].has_channels


def test_several_sources_have_a_channel_each(tmp_path: Path) -> None:
    """A hub's filters are those of the channel from each cluster."""
    (tmp_path / "status.txt").write_text(VERTICAL)
    a, _, _ = loaded(
        tmp_path,
        'replica_status = "status.txt"\nreplicates_from = ["B", "C"]',
        "replicates_from = []",
        "[clusters.C]\nserver_id = 9\nreplicates_from = []\n",
    ).clusters
    assert (a.filter_of("B"), a.filter_of("C")) == (FIRST.filter, SECOND.filter)


def test_a_status_without_the_other_cluster_is_refused(tmp_path: Path) -> None:
    """The message has the channels that there are; one that was never connected is the only one."""
    (tmp_path / "status.txt").write_text(VERTICAL.replace("Source_Server_Id: 2", "Source_Server_Id: 5"))
    with pytest.raises(ConfigurationError, match=r"no channel from B \(server 2\); it has channel '' from server 5"):
        loaded(tmp_path, 'replica_status = "status.txt"')
    (tmp_path / "status.txt").write_text("Replicate_Do_DB: shop\nSource_Server_Id: 0\n")
    a, _ = loaded(tmp_path, 'replica_status = "status.txt"').clusters
    assert a.filter_of("B").do_db == ("shop",)


def test_a_source_that_is_ignored_is_refused(tmp_path: Path) -> None:
    """Nothing of it would arrive."""
    (tmp_path / "status.txt").write_text(VERTICAL.replace("3, 7", "2"))
    with pytest.raises(ConfigurationError, match="Replicate_Ignore_Server_Ids has 2, a server of B"):
        loaded(tmp_path, 'replica_status = "status.txt"')


def test_options_for_channels_without_a_status(tmp_path: Path) -> None:
    """The only channel there is reads the only source; of several, nothing says which."""
    (tmp_path / "my.cnf").write_text("[mysqld]\nserver_id=1\nreplicate-do-db=x:shop\nreplicate-ignore-table=shop.t\n")
    a, _ = loaded(tmp_path, 'variables = "my.cnf"').clusters
    assert a.filter_of("B") == ReplicationFilter(do_db=("shop",), ignore_table=("shop.t",))
    (tmp_path / "my.cnf").write_text("[mysqld]\nserver_id=1\nreplicate-do-db=x:shop\nreplicate-do-db=y:other\n")
    with pytest.raises(ConfigurationError, match=r"filters of .* are for channel x and channel y, and it is not known"):
        loaded(tmp_path, 'variables = "my.cnf"')
