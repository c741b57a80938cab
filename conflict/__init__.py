"""
What happens when row changes of two MySQL NDB Clusters meet.

    import conflict

    result = conflict.resolve("london/", "paris/", conflict_fn={"shop.*": "NDB$MAX(version)"})
    print(result)                               # what happened, at a glance
    result.conflicts, result.outcomes("london"), result.rows("paris", "shop.orders")   # Arrow tables

    result = conflict.resolve("run.toml", out="result")
    result = conflict.read_result("result")     # the same, later

    conflict.explain(result, table="shop.orders", key="id=5")       # why a row ended as it did

    conflict.lost(result).changes               # what did not survive, and why
    conflict.records(result).read_pandas()      # a flat record per conflict and lost change
    conflict.watch("run.toml")                  # the same of logs that grow, one after the other
    conflict.repair(result, {"*": "newest"})    # SQL that makes rows equal again, proved
    conflict.audit(result)                      # values that NDB$MAX and its relatives cannot work with
    conflict.window(result)                     # which side lags, and how long changes can conflict

    conflict.check("run.toml")                  # what servers will refuse; needs no binlog

    conflict.compare("run.toml")                # the same changes under other functions and formats
    conflict.simulate("model.toml", seeds=10)   # a model of clusters: figures, intervals, pictures
    conflict.sweep("model.toml", {"latency_ms": [10, 100], "function": ["NDB$EPOCH()", "NDB$MAX(x)"]})
    conflict.diverge(function="NDB$EPOCH()")    # the shortest schedule that ends badly
    conflict.workload("run.toml"), conflict.sizes("binlog.000001")
    conflict.report(["result", "sizes.json"])   # results as one page

    history = conflict.History(A=["insert 1 v=0", "update 1 v=5"], B=["apply 1", "update 1 v=7", "apply 2"])
    history.resolve("NDB$EPOCH()")              # what becomes of a schedule that is typed in
    conflict.zoo().cell("NDB$MAX(x)", "difference").steps           # what breaks, and the shortest way to it

    changes = conflict.read_binlog("london/", "shop.orders")
    changes.to_pandas()                         # or to_arrow(), to_polars(), or batch by batch

Everything that users import is here; a name is loaded when it is first used, so that Spark and the compiled kernels
are loaded only where they are needed.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from conflict.extras import program_version
from conflict.surroundings import allow_missing_ssl
from ndb_formats.compiled_cache import provide_cache

if TYPE_CHECKING:
    from conflict.api.binlogs import decode, sizes
    from conflict.api.formats import check_replica, logging, requirements, rewrite
    from conflict.api.judging import conformance
    from conflict.api.models import simulate, sweep, workers, workload
    from conflict.api.operations import audit, channel, repair, watch, window
    from conflict.api.results import conflicts, explain, explain_differences, lost, metrics, records, report
    from conflict.api.runs import check, compare, ingest, resolve
    from conflict.api.searching import diverge, zoo
    from conflict.api.setting_up import init
    from conflict.api.spark import register, spark_session
    from conflict.checking.answers import Requirements
    from conflict.checking.logged_statements import LoggedStatements
    from conflict.checking.replica_report import ReplicaReport
    from conflict.checking.report import Report
    from conflict.config.run_file import RunFile, load_run_file
    from conflict.decoding.binlog_table import BinlogTable, read_binlog
    from conflict.decoding.rewritten import Rewritten
    from conflict.discovery.drafted import DraftedRun
    from conflict.errors import ConfigurationError, ConflictError, HistoryError, NotBuiltError
    from conflict.explaining.story import Story
    from conflict.judge.report import Conformance
    from conflict.resolvers.resolver import Resolver, resolver
    from conflict.results.result import Result, read_result
    from conflict.rules.decision import Decision
    from conflict.rules.seen import APPLY, IGNORE, FoundRow, IncomingChange, merge, reject
    from conflict.typed.history import History
    from conflict.typed.verdicts import Verdicts
    from conflict.whatif.comparing.comparison import Comparison
    from conflict.whatif.diverging.divergence import Divergence
    from conflict.whatif.estimates import Estimate
    from conflict.whatif.simulating.simulation import Simulation
    from conflict.whatif.sweeping.swept import Sweep
    from conflict.whatif.zoo.zoo import Zoo

    __version__: str

__all__ = [
    "APPLY",
    "IGNORE",
    "BinlogTable",
    "Comparison",
    "ConfigurationError",
    "ConflictError",
    "Conformance",
    "Decision",
    "Divergence",
    "DraftedRun",
    "Estimate",
    "FoundRow",
    "History",
    "HistoryError",
    "IncomingChange",
    "LoggedStatements",
    "NotBuiltError",
    "ReplicaReport",
    "Report",
    "Requirements",
    "Resolver",
    "Result",
    "Rewritten",
    "RunFile",
    "Simulation",
    "Story",
    "Sweep",
    "Verdicts",
    "Zoo",
    "audit",
    "channel",
    "check",
    "check_replica",
    "compare",
    "conflicts",
    "conformance",
    "decode",
    "diverge",
    "explain",
    "explain_differences",
    "ingest",
    "init",
    "load_run_file",
    "logging",
    "lost",
    "merge",
    "metrics",
    "read_binlog",
    "read_result",
    "records",
    "register",
    "reject",
    "repair",
    "report",
    "requirements",
    "resolve",
    "resolver",
    "rewrite",
    "simulate",
    "sizes",
    "spark_session",
    "sweep",
    "watch",
    "window",
    "workers",
    "workload",
    "zoo",
]

allow_missing_ssl()
provide_cache(Path(__file__).parent)

_MODULES = {
    "conflict.decoding.binlog_table": ("BinlogTable", "read_binlog"),
    "conflict.whatif.comparing.comparison": ("Comparison",),
    "conflict.config.run_file": ("RunFile", "load_run_file"),
    "conflict.errors": ("ConfigurationError", "ConflictError", "HistoryError", "NotBuiltError"),
    "conflict.explaining.story": ("Story",),
    "conflict.api.spark": ("register", "spark_session"),
    "conflict.checking.report": ("Report",),
    "conflict.api.judging": ("conformance",),
    "conflict.judge.report": ("Conformance",),
    "conflict.rules.decision": ("Decision",),
    "conflict.resolvers.resolver": ("Resolver", "resolver"),
    "conflict.rules.seen": ("APPLY", "IGNORE", "FoundRow", "IncomingChange", "merge", "reject"),
    "conflict.api.runs": ("check", "compare", "ingest", "resolve"),
    "conflict.api.operations": ("audit", "channel", "repair", "watch", "window"),
    "conflict.results.result": ("Result", "read_result"),
    "conflict.api.binlogs": ("decode", "sizes"),
    "conflict.typed.history": ("History",),
    "conflict.typed.verdicts": ("Verdicts",),
    "conflict.api.models": ("simulate", "sweep", "workers", "workload"),
    "conflict.api.formats": ("check_replica", "logging", "requirements", "rewrite"),
    "conflict.api.searching": ("diverge", "zoo"),
    "conflict.api.setting_up": ("init",),
    "conflict.checking.answers": ("Requirements",),
    "conflict.checking.logged_statements": ("LoggedStatements",),
    "conflict.checking.replica_report": ("ReplicaReport",),
    "conflict.decoding.rewritten": ("Rewritten",),
    "conflict.discovery.drafted": ("DraftedRun",),
    "conflict.whatif.diverging.divergence": ("Divergence",),
    "conflict.whatif.estimates": ("Estimate",),
    "conflict.whatif.simulating.simulation": ("Simulation",),
    "conflict.whatif.sweeping.swept": ("Sweep",),
    "conflict.whatif.zoo.zoo": ("Zoo",),
    "conflict.api.results": ("conflicts", "explain", "explain_differences", "lost", "metrics", "records", "report"),
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return program_version()
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    message = f"module conflict has no attribute {name}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return sorted(__all__)
