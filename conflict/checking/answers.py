"""
What `conflict.requirements` returns: which conflict functions work with which binlog types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from conflict.checking.findings import Severity
from conflict.checking.reasons import weight_of
from conflict.checking.report import answer_json, tell_answer, tell_answers
from conflict.checking.requirements import Answer, mark
from conflict.config.arguments import DeploymentPolicy
from conflict.extras import data_frame
from conflict.telling.shown import Shown
from conflict.telling.value import Telling

if TYPE_CHECKING:
    import pandas as pd


@attrs.frozen(repr=False, eq=False)
class Requirements(Shown):
    """
    Which conflict functions work with which binlog types. Printed, it is a table, or one answer in full.

    Attributes:
        policy: Which functions are allowed with which binlog types.
        by_function: The answers of each function, one for each binlog type.
    """

    policy: DeploymentPolicy
    by_function: Mapping[str, tuple[Answer, ...]]

    @property
    def answers(self) -> tuple[Answer, ...]:
        """All answers, function by function."""
        return tuple(answer for row in self.by_function.values() for answer in row)

    @property
    def severities(self) -> tuple[Severity, ...]:
        """How much the reasons against a single function with a single type weigh; nothing of a table."""
        return tuple(map(weight_of, self.answers[0].reasons)) if len(self.answers) == 1 else ()

    def document(self) -> dict[str, Any]:
        """Return the document of ``--json``."""
        return {"policy": self.policy.value, "answers": [answer_json(answer) for answer in self.answers]}

    def telling(self) -> Telling:
        """Return what is told of it."""
        if len(self.answers) == 1:
            return tell_answer(self.answers[0])
        return tell_answers(self.by_function, self.policy)

    def to_pandas(self) -> pd.DataFrame:
        """Return an answer a row: function, binlog_type, status, mark, and the codes of the reasons against it."""
        return data_frame(
            {
                "function": name,
                "binlog_type": answer.deployment.source.binlog_type,
                "status": answer.status.value,
                "mark": mark(answer),
                "reasons": [str(reason.code) for reason in answer.reasons],
            }
            for name, row in self.by_function.items()
            for answer in row
        )
