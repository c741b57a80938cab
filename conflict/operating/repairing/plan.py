"""
A plan as users see it: tables, files, and what comes out.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any

import attrs
import pyarrow as pa

from conflict.engine.ledger.layout import OUTCOMES, ROW_KEY
from conflict.history.grid.schemas import PLACE
from conflict.operating.repairing.ended_run import EndedRun
from conflict.operating.repairing.planning import EQUAL, REAPPLY, Planned, ReviewedRow, Wanted
from conflict.operating.repairing.running_a_plan import judged_table, lost_again, outcome_table, races, steps
from conflict.operating.repairing.script import Numbered, Script
from conflict.results.doubts import Doubt, alarms_of, doubts_from_the_middle, warnings_of
from conflict.results.result import Result
from conflict.telling.html import telling_html
from conflict.telling.shown_text import counted, one_line
from conflict.telling.terminal import telling_text
from conflict.telling.value import Entry, Listing, Table, Telling

_FIRST = 10
STATEMENTS = pa.schema(
    [
        *((name, pa.string()) for name in ("file", "cluster")),
        *((name, pa.int32()) for name in ("transaction", "statement")),
        *((name, pa.string()) for name in ("kind", "table")),
        *ROW_KEY,
        ("operation", pa.string()),
        ("changes", pa.int32()),
        *((name, pa.string()) for name in ("why", "sql")),
    ]
)
REVIEW_COLUMNS = pa.schema(
    [
        *((name, pa.string()) for name in ("kind", "table")),
        *ROW_KEY,
        *((name, pa.string()) for name in ("reason", "cluster", "operation")),
        *(OUTCOMES.field(name) for name in PLACE),
    ]
)


@attrs.frozen(eq=False, repr=False)
class Plan:
    """
    What repairs the rows of a result, and what does not. Printed, or in a notebook, it says what comes out.

    Attributes:
        result: The result.
        wanted: What was asked for.
        ended: Its clusters, as they ended.
        planned: The statements, what is left to review, and the proof.
        not_listed: Sentences on changes that may be lost, too, and are neither applied again nor left to review.
    """

    result: Result
    wanted: Wanted = attrs.field(repr=False)
    ended: EndedRun = attrs.field(repr=False)
    planned: Planned = attrs.field(repr=False)
    not_listed: Sequence[str] = ()

    @property
    def proved(self) -> bool:
        """Whether the plan comes out: the reference engine carried it out."""
        return self.planned.proof.holds

    @cached_property
    def doubts(self) -> tuple[Doubt, ...]:
        """What makes the result doubtful."""
        return doubts_from_the_middle(self.result.run)

    @property
    def files(self) -> list[tuple[str, str]]:
        """Cluster and name of each file, in the order in which they run."""
        return [(cluster, f"{number}-{cluster}.sql") for number, (cluster, _) in enumerate(self.planned.files, start=1)]

    @property
    def scripts(self) -> list[Script]:
        """The files."""
        named = zip(self.files, self.planned.files, strict=True)
        return [
            Script(cluster, name, self._head(cluster, name), found, self._identity(cluster, found))
            for (cluster, name), (_, found) in named
        ]

    def _identity(self, cluster: str, statements: Sequence[Numbered]) -> str:
        """Return what tells a file from those of other plans: what it does, and after which epochs."""
        last = [max(times, default=0) for times in self.ended.replayed.times.values()]
        text = "\n".join([cluster, *map(str, last), *(f"{each.transaction} {each.sql}" for each in statements)])
        return sha256(text.encode()).hexdigest()[:32]

    @property
    def steps(self) -> list[str]:
        """What is to be done, in order."""
        return [*steps(self.ended, self.files)]

    @property
    def statements(self) -> pa.Table:
        """The statements, as `STATEMENTS`, in the order in which they run."""
        rows = [
            {
                "file": script.name,
                "cluster": script.cluster,
                "transaction": each.transaction,
                "statement": each.number,
                "kind": each.kind,
                "table": each.repaired.name,
                "key": each.key,
                "identity": each.repaired.key,
                "operation": each.repaired.operation.name,
                "changes": each.changes,
                "why": each.repaired.why,
                "sql": each.sql,
            }
            for script in self.scripts
            for each in script.statements
        ]
        return pa.Table.from_pylist(rows, schema=STATEMENTS)

    @property
    def review(self) -> pa.Table:
        """What no statement repairs, as `REVIEW_COLUMNS`, with why; of a row that differs, its place is NULL."""
        rows = [
            dict(zip(("table", "identity"), each.row, strict=True))
            | {"kind": each.kind, "key": self.ended.key_text(each.row), "reason": each.reason}
            | _place_of(each)
            for each in self.planned.reviewed
        ]
        return pa.Table.from_pylist(rows, schema=REVIEW_COLUMNS)

    @property
    def telling(self) -> Telling:
        """What is told of it."""
        return tell_plan(self)

    def document(self) -> dict[str, Any]:
        """Return its figures as a document."""
        proof = self.planned.proof
        return {
            "rules": [str(rule) for rule in self.wanted.rules],
            "files": [
                {"name": script.name, "cluster": script.cluster, "statements": len(script.statements)}
                for script in self.scripts
            ],
            "steps": self.steps,
            "review": {kind: len(self.planned.reviewed_of(kind)) for kind in (EQUAL, REAPPLY)},
            "lost": len(self.wanted.lost),
            "reapplied": self.planned.reapplied,
            "proved": self.proved,
            "tables": {name: attrs.asdict(counts) for name, counts in proof.tables.items()},
            "not_listed": list(self.not_listed),
            "doubts": [str(each) for each in self.doubts],
        }

    def __repr__(self) -> str:
        return telling_text(self.telling)

    def _repr_html_(self) -> str:
        return telling_html(self.telling)

    def _head(self, cluster: str, name: str) -> list[str]:
        """Return what a file says first."""
        warning = [] if self.proved else ["WARNING: the proof of this plan failed. It does not do what it is for."]
        return [
            *warning,
            f"{name}: repairs rows of cluster {cluster}, of the result in {self.result.folder.uri}",
            f"Rules: {', '.join(map(str, self.wanted.rules)) or 'none'}",
            *self.steps,
            *races(self.ended, self.planned.proof),
            "A row that does not hold what it held when the logs ended is left alone. The SELECT after each",
            "transaction tells how many rows were, and by which statements.",
        ]


def _place_of(reviewed: ReviewedRow) -> dict[str, Any]:
    lost = reviewed.change
    if lost is None:
        return {}
    place = attrs.asdict(lost.origin)
    return place | {"cluster": lost.cluster, "operation": lost.change.operation.name}


def tell_plan(plan: Plan, top: int = _FIRST, folder: str = "") -> Telling:
    """
    Return what a plan repairs, what comes out, and what is left.

    Args:
        plan: The plan.
        top: How many rows of those to review are told.
        folder: Where it was written; empty if it was not.
    """
    statements = sum(len(found) for _, found in plan.planned.files)
    reviewed = plan.planned.reviewed
    proof = plan.planned.proof
    alarms = list(alarms_of(plan.doubts))
    if not plan.proved:
        alarms.append(_not_proved(plan))
    tables = [outcome_table(plan.document()["tables"])] if statements or reviewed else []
    if proof.judged:
        tables.append(judged_table(plan.ended, proof))
    if reviewed:
        tables.append(_reasons(plan))
    listings = [Listing("What to do", [Entry("", one_line(step)) for step in plan.steps])] if statements else []
    if reviewed:
        listings.append(_first(plan, top))
    commands = [
        (f"On {cluster}:", f"mysql --default-character-set=utf8mb4 --binary-mode < {shlex.quote(f'{folder}/{name}')}")
        for cluster, name in plan.files
        if folder
    ]
    return Telling(
        "Repair",
        _headline(plan),
        [*([_proved_words(plan)] if statements and plan.proved else []), *races(plan.ended, proof), *lost_again(proof)],
        tables,
        alarms=alarms,
        warnings=[*plan.not_listed, *warnings_of(plan.doubts)],
        listings=listings,
        commands=commands,
    )


def _headline(plan: Plan) -> str:
    """Return how many rows become equal, and how many lost changes are applied again."""
    equal = sum(each.kind == EQUAL for _, found in plan.planned.files for each in found)
    left, lost = len(plan.planned.reviewed_of(EQUAL)), len(plan.wanted.lost)
    said = "No row differs."
    if equal or left:
        said = f"{counted(equal, 'row')} can be made equal, and {counted(left, 'row')} left to review."
    if plan.wanted.reapply:
        again, rest = plan.planned.reapplied, len(plan.planned.reviewed_of(REAPPLY))
        said += f" Of {counted(lost, 'lost change')}, {again:,} can be applied again, and {rest:,} left to review."
    return said


def _proved_words(plan: Plan) -> str:
    left = len(plan.planned.proof.differing)
    rest = "no row differs" if not left else f"the {counted(left, 'row')} that then differ are all to review"
    return (
        "Proved: the reference engine carried the statements out where the logs end. Each did what it is for, nothing "
        f"else changed, and {rest}."
    )


def _not_proved(plan: Plan) -> str:
    proof = plan.planned.proof
    failed = [f"{row[0]} {plan.ended.key_text(row)}: {why}" for row, why in list(proof.failed.items())[:3]]
    besides = [f"{row[0]} {plan.ended.key_text(row)} changed besides" for row in proof.changed_besides[:3]]
    return one_line(f"The plan does not come out: {'; '.join([*failed, *besides])}.")


def _reasons(plan: Plan) -> Table:
    counts = Counter((each.row[0], _what(plan, each), each.reason) for each in plan.planned.reviewed)
    rows = [(table, what, one_line(reason), count) for (table, what, reason), count in counts.most_common()]
    return Table("Left to review", ("table", "what", "why", ""), rows, texts=3)


def _what(plan: Plan, reviewed: ReviewedRow) -> str:
    if reviewed.kind == REAPPLY:
        return "lost change"
    return "row that differs" if plan.ended.differs(reviewed.row) else "row that may differ"


def _first(plan: Plan, top: int) -> Listing:
    """Return the first rows to review."""
    reviewed = plan.planned.reviewed
    entries = [
        Entry("", one_line(f"{each.row[0]} {plan.ended.key_text(each.row)}"), [one_line(_left(each))])
        for each in reviewed[:top]
    ]
    left = len(reviewed) - len(entries)
    if left:
        entries.append(Entry("", f"and {left:,} more; --top shows more of them, --out FOLDER all"))
    return Listing("To review", entries)


def _left(reviewed: ReviewedRow) -> str:
    return reviewed.reason if reviewed.change is None else f"{reviewed.change}: {reviewed.reason}"
