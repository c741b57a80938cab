"""
The steps of a scenario, carried out: each handler takes a step, and returns it with what came of it.

The format of steps is in docs/cases.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from tests.recorder.appliers import Appliers
from tests.recorder.clusters import Clusters
from tests.recorder.sql_node import SqlNode, until

__all__ = ["Stage", "UnknownStepError", "carried_out", "transaction"]

Step = dict[str, Any]
INCIDENT = 13119  # what a restart of the source leaves in its log


class UnknownStepError(Exception):
    """A step of a scenario cannot be carried out; the message says which one."""


@attrs.frozen
class Stage:
    """Where steps are carried out: the clusters, and their appliers."""

    clusters: Clusters
    appliers: Appliers

    def node(self, name: str) -> SqlNode:
        """Return an SQL node by the scenario's name for it."""
        return self.appliers.nodes[name]


def carried_out(stage: Stage, step: Step) -> Step:
    """
    Carry out a step.

    Raises:
        UnknownStepError: It is of a kind that is not known.
    """
    if "sql" in step:
        return (_autocommit if step.get("autocommit") else transaction)(stage, step)
    if "sleep_ms" in step:
        time.sleep(step["sleep_ms"] / 1000)
        return step
    handler = _ACTIONS.get(step.get("action", ""))
    if handler is None:
        known = ", ".join(_ACTIONS)
        message = f"no step like {step}: the actions are {known}; what was live is not kept in scenarios"
        raise UnknownStepError(message)
    return handler(stage, step)


def transaction(stage: Stage, step: Step) -> Step:
    """Carry out a transaction; after an error it is rolled back."""
    node, session = stage.node(step["on"]), "steps"
    if "session" in step:
        session = f"session {time.monotonic()}"  # what it sets ends with it
        for sql in step["session"]:
            node.result(sql, session)
    results = []
    for sql in ("BEGIN", *step["sql"], "COMMIT"):
        found = node.result(sql, session)
        if sql not in ("BEGIN", "COMMIT") or "error" in found:
            results.append(found)
        if "error" in found:
            node.result("ROLLBACK", session)
            break
    ((_, epoch),) = node.result("SHOW SESSION STATUS LIKE 'Ndb_last_commit_epoch_session'", session)["rows"]
    given: Step = {name: step[name] for name in ("on", "session", "sql") if name in step}
    rolled_back = {"rolled_back": True} if "error" in results[-1] else {}
    return {**given, "result": results, "epoch": int(epoch), **rolled_back}


def _autocommit(stage: Stage, step: Step) -> Step:
    node = stage.node(step["on"])
    return {**step, "result": [node.result(sql, "steps") for sql in step["sql"]]}


def _start(stage: Stage, step: Step) -> Step:
    stage.appliers.start(step["applier"])
    return step


def _stop(stage: Stage, step: Step) -> Step:
    stage.appliers.stop(step["applier"])
    return {**step, "epoch": stage.appliers.applied_epoch(step["applier"])} if "epoch" in step else step


def _rewind(stage: Stage, step: Step) -> Step:
    stage.appliers.rewind(step["applier"])
    return step


def _wait(stage: Stage, step: Step) -> Step:
    return _ended(step, stage.appliers.wait(step["applier"]))


def _quiesce(stage: Stage, step: Step) -> Step:
    found = stage.appliers.quiesce()
    return {**step, "reached": not found} if "reached" in step else _ended(step, found)


def _ended(step: Step, why: str) -> Step:
    """Return a wait with the reason for which it ended early, if it did."""
    plain = {name: value for name, value in step.items() if name != "result"}
    return {**plain, "result": why} if why else plain


def _role(stage: Stage, step: Step) -> Step:
    node = stage.node(step.get("applier") or step["server"])
    node.rows(f"SET GLOBAL ndb_applier_conflict_role = '{step['role']}'")
    return step


def _failover(stage: Stage, step: Step) -> Step:
    """Move a channel to another SQL node of its cluster, and another one of the source's, as the manual says."""
    appliers, old, new, source = stage.appliers, step["applier"], step["to"], step["source"]
    appliers.stop(old)
    known = [stage.node(name) for name in appliers.nodes if stage.node(name).cluster == stage.node(source).cluster]
    ids = ", ".join(str(node.server_id) for node in known)
    (found,) = stage.node(new).rows(f"SELECT MAX(epoch) FROM mysql.ndb_apply_status WHERE server_id IN ({ids})")
    epoch = int(found[0] or 0)
    stage.node(source).position()
    file, offset = stage.node(source).after_epoch(epoch) or appliers.starts[source]
    if new != old:
        del appliers.links[old]  # no RESET REPLICA: it would empty the table of applied epochs
    appliers.link(new, source, (file, offset))
    appliers.start(new)
    return {**step, "after_epoch": epoch, "file": file, "position": offset}


def _restarted(stage: Stage, step: Step) -> Step:
    node = stage.node(step["server"])
    stage.clusters.restart_server(node, stage.clusters.options(node))
    return step


def _error(stage: Stage, step: Step) -> Step:
    """Wait for an applier to stop with an error; it is made to skip a source's incident, as the DBA does."""
    replica = step["applier"]
    until(f"an error of the applier of {replica}", lambda: not stage.appliers.runs(replica), 30)
    errno, error = stage.appliers.error(replica)
    if errno == INCIDENT:
        _skip(stage, step)
    return {**step, "errno": errno, "error": error}


def _skip(stage: Stage, step: Step) -> Step:
    stage.node(step["applier"]).rows("SET GLOBAL sql_replica_skip_counter = 1")
    return step


def _delay(stage: Stage, step: Step) -> Step:
    replica = step["applier"]
    stage.appliers.stop(replica)
    stage.node(replica).rows(f"CHANGE REPLICATION SOURCE TO SOURCE_DELAY = {step['seconds']}")
    stage.appliers.start(replica)
    return step


def _data_node(stage: Stage, step: Step) -> Step:
    cluster = step["data_node"]
    if step["action"] == "killed":
        stage.clusters.kill_data_node(cluster)
        return step
    stage.clusters.start_data_node(cluster)
    for node in stage.clusters.nodes:
        if node.cluster == cluster:
            stage.clusters.wait_for(node)
    return step


def _restart(stage: Stage, step: Step) -> Step:
    return _data_node(stage, step) if "data_node" in step else _restarted(stage, step)


_ACTIONS: Mapping[str, Callable[[Stage, Step], Step]] = {
    "start": _start,
    "stop": _stop,
    "rewind": _rewind,
    "wait": _wait,
    "quiesce": _quiesce,
    "role": _role,
    "failover": _failover,
    "restarted": _restart,
    "killed": _data_node,
    "error": _error,
    "skipped one event group": _skip,
    "delay": _delay,
}
