"""
A conflict function as it is in force on a cluster: what the role, and the format of the table's log, make of it.

The functions with roles (NDB$EPOCH2, NDB$EPOCH2_TRANS) find conflicts on the primary alone; the secondary follows it,
PASS ignores them, and without a role the applier stops. All others do the same in every role.
Source: MySQL manual, "NDB$EPOCH2()" and "ndb_applier_conflict_role", and recordings, where a property says so.
"""

from __future__ import annotations

import attrs

from conflict.rules.functions import ConflictFunction
from conflict.rules.replication_table import Role
from ndb_formats.rules.update_format import UpdateFormat


@attrs.frozen
class Deployed:
    """
    The function of a table, and where it is in force.

    Attributes:
        function: The function; None if the table has none.
        role: ``ndb_applier_conflict_role`` of the cluster; None if it is not known.
        format: How its server logs the table.
    """

    function: ConflictFunction | None
    role: Role | None = Role.NONE
    format: UpdateFormat = attrs.field(factory=UpdateFormat)

    def _in_role(self, role: Role) -> bool:
        """Whether the function has roles, and the cluster this one."""
        return self.role is role and self.function is not None and self.function.spec.uses_role

    @property
    def lacks_role(self) -> bool:
        """Whether the function needs a role and has none: the applier stops at the first change of the table."""
        return self._in_role(Role.NONE)

    @property
    def as_secondary(self) -> bool:
        """Whether the applier follows the primary: it takes its changes, and finds no conflict."""
        return self._in_role(Role.SECONDARY)

    @property
    def ignored(self) -> bool:
        """Whether the applier does as if the table had no function: under PASS."""
        return self._in_role(Role.PASS)

    @property
    def active(self) -> ConflictFunction | None:
        """The function that the applier goes by; None if there is none, or it is ignored."""
        return None if self.ignored else self.function

    @property
    def judge(self) -> ConflictFunction | None:
        """The function that finds conflicts here, if its role does not stop the applier before; None if none does."""
        return None if self.as_secondary else self.active

    @property
    def judges(self) -> bool:
        """Whether conflicts of the table are found here."""
        return self.judge is not None

    @property
    def refreshes(self) -> bool:
        """Whether a row whose change is rejected is refreshed: it is sent back as it stands here."""
        judge = self.judge
        return judge is not None and judge.spec.refreshes

    @property
    def rejects_transactions(self) -> bool:
        """Whether a conflict of the table rejects whole transactions."""
        judge = self.judge
        return judge is not None and judge.spec.transactional

    @property
    def needs_transaction_ids(self) -> bool:
        """Whether a change without a transaction id stops the applier; that of a secondary, too (recorded)."""
        active = self.active
        return active is not None and active.spec.transactional

    @property
    def marks_reflected(self) -> bool:
        """Whether the applier marks what it applies as reflected, and as a change of its own cluster."""
        return self._in_role(Role.PRIMARY)

    @property
    def reflects(self) -> bool:
        """Whether what it marks so goes back to the secondary: the server logs the table."""
        return self.marks_reflected and self.format.logged
