"""What was applied, in stretches."""

import numpy as np

from conflict.decision import Verdict
from conflict.kernels.outcomes import applied_stretches

APPLIED_ONE, REJECTED = int(Verdict.APPLIED), int(Verdict.REJECTED)


def test_stretches_end_where_something_else_happened() -> None:
    """Takes 0 and 2 are of applier 0; what was rejected, logged by the other applier or left out ends a stretch."""
    applier = np.array([0, 1, 0], np.int8)
    taken, starts = np.array([0, 1, 2], np.int32), np.array([0, 3, 4, 10], np.int32)
    source = np.array([0, 1, 2, 0, 3, 4, -1, 5, 7, 8], np.int32)
    verdict = np.array([APPLIED_ONE] * 10, np.int8)
    verdict[9] = REJECTED
    takes, first, last, others = applied_stretches(applier, 0, taken, starts, source, verdict)
    assert list(zip(takes.tolist(), first.tolist(), last.tolist(), strict=True)) == [(0, 0, 2), (2, 3, 5), (2, 7, 7)]
    assert others.tolist() == [6, 9]
