"""
What recordings say of an engine, or of a resolver: one verdict per case, by function, format and anomaly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from conflict.extras import data_frame
from conflict.judge.judge import CaseStatus, CaseVerdict
from conflict.telling.html import telling_html
from conflict.telling.shown_text import counted
from conflict.telling.terminal import telling_text
from conflict.telling.value import Entry, Listing, Table, Telling, Tone, Toned

_TONES = {CaseStatus.PASS: Tone.GOOD, CaseStatus.FAIL: Tone.BAD, CaseStatus.NOT_YET: Tone.DOUBTFUL}
_ROW = ("part", "case", "function", "binlog_type", "anomaly", "status", "detail")
_FIGURES = ("decisions", "differing", "rows_differ", "rows_differ_with")


@attrs.frozen(eq=False)
class Conformance:
    """
    Verdicts on recordings.

    Attributes:
        verdicts: One per case.
        resolver: The resolver that stood in place of the recorded functions; None if an engine was judged.
    """

    verdicts: tuple[CaseVerdict, ...]
    resolver: str | None = None

    @property
    def failed(self) -> bool:
        """Whether a recording contradicts the engine."""
        return any(each.status is CaseStatus.FAIL for each in self.verdicts)

    def to_json(self) -> dict[str, Any]:
        """Return the verdicts as a document."""
        counts = Counter(verdict.status for verdict in self.verdicts)
        statuses = [each for each in CaseStatus if each is not CaseStatus.DIFFERS or self.resolver is not None]
        document = {
            "counts": {status.value: counts[status] for status in statuses},
            "by_candidates": sum(verdict.by_candidates for verdict in self.verdicts),
            "cases": [attrs.asdict(verdict) for verdict in self.verdicts],
        }
        return document if self.resolver is None else {"resolver": self.resolver, **document}

    def to_pandas(self) -> Any:
        """Return a DataFrame of pandas with a row per case; of a resolver, with what it decides otherwise."""
        return data_frame(self._row(each) for each in self.verdicts)

    def _row(self, verdict: CaseVerdict) -> dict[str, Any]:
        found = {name: getattr(verdict, name) for name in _ROW}
        if self.resolver is None:
            return found
        other = verdict.other
        figures = None if other is None else (other.decisions, len(other.differences), *other.rows_that_differ)
        return found | dict(zip(_FIGURES, figures or [None] * len(_FIGURES), strict=True))

    def __repr__(self) -> str:
        return telling_text(tell_conformance(self))

    def _repr_html_(self) -> str:
        return telling_html(tell_conformance(self))


def tell_conformance(found: Conformance) -> Telling:
    """Return what recordings say: counts, what is counted in a case, and the first difference of each case."""
    return _of_engine(found.verdicts) if found.resolver is None else _of_resolver(found.verdicts, found.resolver)


def _of_engine(verdicts: Sequence[CaseVerdict]) -> Telling:
    sentences = []
    undecided = [verdict.undecided for verdict in verdicts if verdict.undecided]
    if undecided:
        sentences.append(
            f"The binlogs leave {counted(sum(undecided), 'decision')} in {counted(len(undecided), 'case')} open, "
            "judged by what may have been decided."
        )
    by_candidates = sum(verdict.by_candidates for verdict in verdicts)
    if by_candidates:
        sentences.append(
            f"By candidates, with other answers than those that were chosen: {counted(by_candidates, 'case')}."
        )
    reasons = Counter(each.detail for each in verdicts if each.status is CaseStatus.NOT_YET)
    sentences += [f"not yet ({times}): {reason}" for reason, times in reasons.most_common()]
    told = [each for each in verdicts if each.detail and each.status is not CaseStatus.NOT_YET]
    entries = [Entry(each.status.value, f"{each.case}: {each.detail}", tone=_TONES.get(each.status)) for each in told]
    return Telling(
        "Conformance",
        tables=[_counts(verdicts)],
        sentences=sentences,
        listings=[Listing("", entries)] if entries else [],
    )


def _counts(verdicts: Sequence[CaseVerdict]) -> Table:
    counts: dict[tuple[str, str], Counter[CaseStatus]] = {}
    for verdict in verdicts:
        folder = verdict.case.rpartition("/")[0]
        counts.setdefault((verdict.part, folder), Counter())[verdict.status] += 1
    total = Counter(verdict.status for verdict in verdicts)
    rows = [[*place, *_toned(each)] for place, each in counts.items()] + [["all", "", *_toned(total)]]
    headings = ["part", "folder", *_TONES]
    return Table(f"Conformance of engine {verdicts[0].engine}", headings, rows, texts=2)


def _toned(counts: Counter[CaseStatus]) -> Iterable[object]:
    return [Toned(counts[status], tone) if counts[status] else 0 for status, tone in _TONES.items()]


def _of_resolver(verdicts: Sequence[CaseVerdict], resolver: str) -> Telling:
    tried = [(each, each.other) for each in verdicts if each.other is not None]
    decisions = sum(other.decisions for _, other in tried)
    differing = sum(len(other.differences) for _, other in tried)
    rows: dict[tuple[str, str], list[int]] = {}
    for each, other in tried:
        row = rows.setdefault((each.function or "none", str(each.binlog_type)), [0] * 6)
        figures = 1, bool(other.differences), other.decisions, len(other.differences), *other.rows_that_differ
        row[:] = [a + int(b) for a, b in zip(row, figures, strict=True)]
    headings = ["recorded", "type", "cases", "that differ", "decisions", "other", "rows differ", "with it"]
    title = f"{resolver} in place of the recorded functions"
    note = "rows differ: between the clusters at the end, as recorded, and with the resolver."
    entries = [Entry(each.case, str(other.differences[0])) for each, other in tried if other.differences]
    left = Counter(each.detail for each in verdicts if each.other is None)
    return Telling(
        "Conformance",
        headline=f"{resolver} decides otherwise than the clusters did on {differing:,} of {decisions:,} changes.",
        tables=[Table(title, headings, [[*key, *row] for key, row in sorted(rows.items())], note=note, texts=2)],
        listings=[Listing("The first difference of each case", entries)] if entries else [],
        warnings=[f"not tried ({times}): {reason}" for reason, times in left.most_common()],
    )
