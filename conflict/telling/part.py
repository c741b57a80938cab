"""
What a report says of a result besides what is told of it anywhere: its log, what stands at the top, bytes and counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import attrs

from conflict.telling.shown_text import counted
from conflict.telling.value import Telling


class Measured(IntEnum):
    """Where bytes come from; the greatest of a report are those that its answer is about."""

    SIMULATED = 1
    COMPARED = 2
    MEASURED = 3


@attrs.frozen
class RowCounts:
    """
    How many row changes a log has, and would have under other functions.

    Attributes:
        users: Those that users made, under every function.
        configured: The functions under which the log was recorded.
        by_appliers: By functions, the rows that appliers log: applied, refreshed and reflected ones.
    """

    users: int
    configured: str
    by_appliers: Mapping[str, int]

    def scale(self, function: str) -> float | None:
        """Return how many times as many rows the log has under a function; None if that is not known."""
        if function not in self.by_appliers or self.configured not in self.by_appliers:
            return None
        now, then = (self.users + self.by_appliers[each] for each in (function, self.configured))
        return now / then if then else None


@attrs.frozen
class Bytes:
    """
    What row events take in each binlog type, before compression.

    Attributes:
        source: Where they come from.
        bounds: By binlog type, bytes at least and at most.
        lower: Binlog types that log values which the log lacks: both bounds are without these, and they take more.
        base: What the bytes of the types are related to: ``type 7``; empty if nothing is.
        base_bytes: Its bytes.
        of: What the row events are of, after “in”: ``the measured log``.
        rows: Row changes that take the bytes; 0 if not known.
        functions: The functions that the rows have; none if that is not known.
        other_bytes: What else the log takes, in every binlog type; 0 if that is not known.
        seconds: From its first row change to its last one; 0 if that is not known.
        servers: By server, what its part of the log takes in each binlog type, other bytes included; empty if that is
            not known.
        compressed: What the whole log would take as it was recorded, with its transactions compressed; 0 if not known.
        logged: How many rows the log would have under other functions; None if that is not known.
    """

    source: Measured
    bounds: Mapping[str, tuple[int, int]]
    base: str
    base_bytes: int
    of: str
    rows: int = 0
    functions: Sequence[str] = ()
    other_bytes: int = 0
    seconds: int = 0
    servers: Mapping[int, Mapping[str, int]] = attrs.field(factory=dict)
    compressed: int = 0
    logged: RowCounts | None = None
    lower: frozenset[str] = frozenset()


class Topic(IntEnum):
    """What the top of a page answers, and the columns of its table are about, in this order."""

    FUNCTION = 1
    LIMIT = 2
    BYTES = 3


@attrs.frozen
class Headline:
    """
    An answer for the top of a page.

    Attributes:
        topic: What it answers.
        question: That, as a question.
        answer: In a few words: a function, a latency, an amount; empty if it takes a sentence.
        sentences: The answer and what weakens it most, in a few sentences.
        setting: From what it is, in sentences: a log, simulations.
    """

    topic: Topic
    question: str
    answer: str
    sentences: Sequence[str]
    setting: Sequence[str] = ()


@attrs.frozen
class FunctionFigures:
    """
    What a result says of each function, for the table at the top of a page.

    Attributes:
        topic: Which answer it belongs to.
        heading: What it says.
        cells: By function.
    """

    topic: Topic
    heading: str
    cells: Mapping[str, object]


@attrs.frozen
class Example:
    """
    A picture that shows what a result is about.

    Attributes:
        title: What it shows.
        wide: The picture, as SVG in the colours of the page's theme.
        narrow: The same for a telephone.
        command: What to type for the same in words.
    """

    title: str
    wide: str
    narrow: str
    command: str


@attrs.frozen(eq=False)
class Part:
    """
    What a report says of one result.

    Attributes:
        telling: What is told of it.
        source: The file or folder that it was read from.
        asked: What was asked: names and what they are.
        configuration: All that determined the result, as a document.
        best: The functions that lose least, where functions are compared.
        bytes: What row events take.
        headlines: Answers for the top of the page.
        by_function: Columns for the table at the top of the page.
        basis: How simulated losses differ from recorded ones, in sentences.
        recorded: Whether it decides recorded changes, and not simulated ones.
        lost_share: The configured function without its arguments, and the share of users' changes that it loses: as
            recorded, or simulated with epochs that take as long as the recorded ones; None if that is not known.
        log: Which log it is of, or its model was learnt from: the digest and the name of each binlog file; empty if
            that is not known.
        example: A picture of one example, if there is one.
    """

    telling: Telling
    source: str
    asked: Mapping[str, str]
    configuration: Any
    best: Sequence[str] = ()
    bytes: Bytes | None = None
    headlines: Sequence[Headline] = ()
    by_function: Sequence[FunctionFigures] = ()
    basis: Sequence[str] = ()
    recorded: bool = True
    lost_share: tuple[str, float] | None = None
    log: Mapping[str, str] = attrs.field(factory=dict)
    example: Example | None = None

    def with_sentences(self, *sentences: str, before: Sequence[str] = ()) -> Part:
        """Return it with more sentences, before those that it has or after them."""
        said = (*before, *self.telling.sentences, *sentences)
        return attrs.evolve(self, telling=attrs.evolve(self.telling, sentences=said))

    def shares_log(self, other: Part) -> bool:
        """Whether both describe the same log or a part of it; a part that names no log counts as the same."""
        mine, theirs = set(self.log), set(other.log)
        return not mine or not theirs or mine <= theirs or theirs <= mine


_MOST_FILES = 4  # of a log in a sentence


def log_of(files: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the digest and the name of each binlog file that a document lists; none if it has no digests."""
    return {each["digest"]: _name(each["path"]) for each in files if "digest" in each}


def _name(path: str) -> str:
    """Return the last two parts of a path: files of both clusters can have one name."""
    return "/".join(Path(path).parts[-2:])


def log_words(log: Mapping[str, str]) -> str:
    """Return the names of some of the files of a log."""
    names = list(log.values())
    more = f" and {counted(len(names) - _MOST_FILES, 'more file')}" if len(names) > _MOST_FILES else ""
    return ", ".join(names[:_MOST_FILES]) + more
