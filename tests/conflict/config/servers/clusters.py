"""Two fake clusters that replicate to each other, as their SQL nodes tell of them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import attrs

from tests.conflict.checking.configurations import VARIABLES
from tests.conflict.config.servers.fake_server import Answer, FakeServer

DEFINITION = (
    "CREATE TABLE `orders` (\n  `id` int NOT NULL AUTO_INCREMENT,\n  `note` varchar(40) DEFAULT 'a\\tb; `c`',\n"
    "  `version` int unsigned NOT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=ndbcluster AUTO_INCREMENT={} "
    "DEFAULT CHARSET=utf8mb4"
)
ROW = {"db": b"shop", "table_name": b"orders", "server_id": "0", "binlog_type": "7", "conflict_fn": b"NDB$MAX(version)"}
VARIABLES_OF_ALL = {"datadir": "/var/lib/mysql/", "hostname": "db", "port": "3306", "version": "9.7.4-cluster"}
COUNTERS = {"Ndb_conflict_fn_max": "18446744073709551615", "Ndb_conflict_fn_old": "0"}
BINLOG, CLOCK = "SHOW BINARY LOG STATUS", "SELECT UTC_TIMESTAMP(6) AS now"


def variables_of(server_id: int, **others: str) -> dict[str, str]:
    """Return what an SQL node prints of its variables."""
    own = {"server_id": str(server_id), "server_uuid": f"uuid {server_id}", "log_bin_basename": "/var/lib/mysql/log"}
    return {**VARIABLES_OF_ALL, **VARIABLES, **own, **others}


def channel_of(source: int, **others: str) -> dict[str, str]:
    """Return a row of SHOW REPLICA STATUS."""
    filters = dict.fromkeys(("Replicate_Do_DB", "Replicate_Ignore_DB", "Replicate_Wild_Ignore_Table"), "")
    ids = {"Replicate_Ignore_Server_Ids": "", "Source_Server_Id": str(source), "Channel_Name": ""}
    return {"Source_Host": "db", **filters, "Last_Error": "one\ntwo: three", **ids, **others}


def clock(ahead: float) -> Callable[[], list[dict[str, str]]]:
    """Return what gives the time of a clock that is so many seconds ahead."""
    return lambda: [{"now": f"{datetime.now(UTC) + timedelta(seconds=ahead):%Y-%m-%d %H:%M:%S.%f}"}]


def answers_of(variables: dict[str, str], *channels: dict[str, str], **others: Answer) -> dict[str, Answer]:
    """Return what an SQL node answers."""
    return {
        "SELECT CURRENT_USER() AS account, VERSION() AS version": [
            {"account": "reader@%", "version": variables["version"]}
        ],
        "SHOW GLOBAL VARIABLES": [{"Variable_name": name, "Value": value} for name, value in variables.items()],
        "SHOW REPLICA STATUS": [*channels],
        BINLOG: [{"File": "log.000003", "Binlog_Do_DB": "", "Binlog_Ignore_DB": ""}],
        "SELECT FILTER_NAME, FILTER_RULE FROM performance_schema.replication_applier_global_filters": [],
        "SELECT TABLE_SCHEMA AS db, TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' "
        "AND TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys', 'ndbinfo') "
        "ORDER BY TABLE_SCHEMA, TABLE_NAME": [{"db": "shop", "name": "orders"}],
        "SHOW CREATE TABLE `shop`.`orders`": [
            {"Table": "orders", "Create Table": DEFINITION.format(variables["server_id"])}
        ],
        "SELECT * FROM mysql.ndb_replication": [ROW],
        "SHOW GLOBAL STATUS LIKE 'Ndb\\_%'": [
            {"Variable_name": name, "Value": value} for name, value in COUNTERS.items()
        ],
        CLOCK: clock(0),
        **others,
    }


@attrs.frozen
class Pair:
    """Two servers that replicate to each other."""

    london: FakeServer
    paris: FakeServer


def pair(**of_london: Answer) -> Pair:
    """Return two servers; with other answers of the first one."""
    return Pair(
        FakeServer({**answers_of(variables_of(1), channel_of(2)), **of_london}),
        FakeServer(answers_of(variables_of(2, auto_increment_offset="2"), channel_of(1))),
    )
