"""
Whether a conflict function can work as deployed, why not, and what would work; no data is read.

An answer cannot show which events will arrive, so the applier checks each event again.
"""

from __future__ import annotations

from enum import Enum

import attrs

from conflict.compatibility.arriving_changes import ArrivingChange
from conflict.compatibility.deployment import Deployment, Policy
from conflict.compatibility.notes import notes_of
from conflict.compatibility.reasons import Reason, ReasonKind, changes_of, reasons_of
from conflict.compatibility.suggestions import NearestSetting, nearest_settings

__all__ = ["Answer", "Status", "requirements"]


class Status(Enum):
    """The verdict of an answer."""

    USABLE = "usable"
    USABLE_BUT = "usable, but"
    REFUSED = "refused"


@attrs.frozen
class Answer:
    """
    Whether a function can work as deployed.

    Attributes:
        deployment: The function and its settings.
        policy: Which functions are allowed with which binlog types.
        reasons: The reasons against it, those that rule it out first.
        changes: Each kind of change as it arrives, and how the applier handles it.
        nearest: The nearest settings that would work, if there are reasons against these.
        notes: Facts to know that are no reason against it.
    """

    deployment: Deployment
    policy: Policy
    reasons: tuple[Reason, ...] = ()
    changes: tuple[ArrivingChange, ...] = ()
    nearest: tuple[NearestSetting, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        """Refused for one reason that rules the function out; usable, but, for any other."""
        if any(reason.kind.refuses for reason in self.reasons):
            return Status.REFUSED
        return Status.USABLE_BUT if self.reasons else Status.USABLE

    @property
    def by_policy(self) -> bool:
        """Whether the policy refuses it."""
        return any(reason.kind is ReasonKind.POLICY for reason in self.reasons)


def requirements(deployment: Deployment, policy: Policy = Policy.MANUAL) -> Answer:
    """Return whether a function can work as deployed, why not, and what would work."""
    return Answer(
        deployment,
        policy,
        reasons_of(deployment, policy),
        changes_of(deployment),
        nearest_settings(deployment, policy),
        notes_of(deployment),
    )
